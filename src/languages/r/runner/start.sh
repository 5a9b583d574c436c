# Started as `sh start.sh ARGUMENT...`: starts R as Rscript would. That starts a shell script, this sed and uname, to find
# out what describe.R has already seen.
. "${0%/*}/environment"
exec "$R_HOME/bin/exec$R_ARCH/R" --no-echo --no-restore "$@"

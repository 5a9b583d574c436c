# Started as `sh start.sh ARGUMENT...`: starts R as Rscript would. That starts a shell script, this sed and uname, to
# find out what describe.R has already seen. With --no-init-file first, it is not a user's program.
. "${0%/*}/environment"
[ "$1" = --no-init-file ] || export R_PROFILE_USER="${0%/*}/profile.R"
exec "$R_HOME/bin/exec$R_ARCH/R" --no-echo --no-restore "$@"

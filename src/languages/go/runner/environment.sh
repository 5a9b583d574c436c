# What the Go tools get wherever they run: nothing of a user's settings that could change what is built, nothing looked
# up, nothing told. Two compilers of two threads at a time on however many cores, each collecting its garbage late but
# for a large program: that is quick, and fits into 1 GiB. None of it reaches the program.
export GOTOOLCHAIN=local GOMAXPROCS=2 GOGC=400 GOMEMLIMIT=300MiB

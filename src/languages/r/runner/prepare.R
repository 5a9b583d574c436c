# Started as `sh start.sh --no-init-file --file=prepare.R --args RUNNER FOLDER`: compiles plots.R for profile.R.
places <- commandArgs(TRUE)
plots <- new.env(parent = baseenv())
sys.source(file.path(places[1], "plots.R"), plots, keep.source = FALSE)
for (name in ls(plots))
  if (is.function(plots[[name]])) assign(name, compiler::cmpfun(plots[[name]]), plots)
saveRDS(plots, file.path(places[2], "plots.rds"), compress = FALSE)

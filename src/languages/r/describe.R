# Run once on the host by each Rscript that could serve, with `-e`: says in one line of JSON what it is.
quoted <- function(text) paste0("\"", gsub("([\"\\\\])", "\\\\\\1", text), "\"")
array <- function(texts) paste0("[", paste(quoted(texts), collapse = ","), "]")
hex <- function(text) paste(format(charToRaw(text)), collapse = "")

# R stands by itself, or is a part of something whose libraries it needs (prefix/lib/R).
home <- normalizePath(R.home())
prefix <- if (basename(home) == "R" && grepl("^lib", basename(dirname(home)))) dirname(dirname(home)) else home

# Whether other users may look into a folder. A sandbox that root starts is another user.
is_open <- function(folder) {
  if (Sys.info()[["effective_user"]] != "root") return(TRUE)
  while (dirname(folder) != folder) {
    if (bitwAnd(as.integer(file.info(folder)$mode), 5L) != 5L) return(FALSE)
    folder <- dirname(folder)
  }
  TRUE
}

users <- strsplit(Sys.getenv("R_LIBS_USER"), ":")[[1]]
users <- normalizePath(users[dir.exists(users)])
users <- users[vapply(users, is_open, NA)]
sites <- setdiff(normalizePath(.Library.site), users)
folders <- unique(c(users, sites, normalizePath(.Library)))

# Packages that can be loaded: all that they need is there as well.
loadable <- function(folders) {
  fields <- c("Depends", "Imports")
  all <- installed.packages(lib.loc = folders, fields = fields)
  all <- all[!duplicated(all[, "Package"]), , drop = FALSE]
  needed <- lapply(tools::package_dependencies(all[, "Package"], all, fields), setdiff, "R")
  repeat {
    whole <- vapply(needed, function(names) all(names %in% names(needed)), NA)
    if (all(whole)) break
    needed <- needed[whole]
  }
  all <- all[all[, "Package"] %in% names(needed) & !all[, "Priority"] %in% "base", , drop = FALSE]
  sort(paste(all[, "Package"], all[, "Version"]))
}

# Without its cache, fontconfig reads all fonts anew at each first plot.
fonts <- Filter(dir.exists, "/var/cache/fontconfig")

# What the front end of R sets before it starts R itself, for start.sh.
variables <- c("R_HOME", "R_SHARE_DIR", "R_INCLUDE_DIR", "R_DOC_DIR", "R_ARCH", "SED", "LD_LIBRARY_PATH")
values <- Sys.getenv(variables)
if (length(users)) values <- c(values, R_LIBS_USER = paste(users, collapse = ":"))
environment <- paste0("export ", names(values), "=", shQuote(values), "\n", collapse = "")

cat("\n{\"executable\":", quoted(file.path(home, "bin", "Rscript")),
    ",\"version\":", quoted(as.character(getRversion())),
    ",\"paths\":", array(unique(c(home, prefix, sites, users, fonts))),
    ",\"libraries\":", array(loadable(folders)),
    ",\"files\":{\"environment\":", quoted(hex(environment)), "}",
    ",\"virtual\":false}\n", sep = "")

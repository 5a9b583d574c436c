# Started as `sh start.sh --no-init-file --file=install.R --args FOLDER NAME...`: installs the packages that the system
# does not have into the folder, with all that they need. Unlike install.packages(), which only warns, it fails.
folder <- commandArgs(TRUE)[1]
wanted <- commandArgs(TRUE)[-1]

# The user's own settings. What only works on the user's desk must not stop the installation, which starts more R.
profile <- Sys.getenv("R_PROFILE_USER", "~/.Rprofile")
proxies <- Sys.getenv(c("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "no_proxy", "NO_PROXY"))
if (file.exists(profile)) try(sys.source(profile, globalenv()))
do.call(Sys.setenv, as.list(proxies)) # there is no other way out
Sys.setenv(R_PROFILE_USER = "/dev/null")

# R asks curl for what it downloads.
if (!nzchar(Sys.getenv("CURL_CA_BUNDLE")) && nzchar(Sys.getenv("SSL_CERT_FILE")))
  Sys.setenv(CURL_CA_BUNDLE = Sys.getenv("SSL_CERT_FILE"))

local({
  repository <- Sys.getenv("R_REPO")
  known <- getOption("repos")
  if (nzchar(repository)) known <- c(CRAN = repository)
  known[known == "@CRAN@"] <- getCRANmirrors(local.only = TRUE)$URL[1] # the one that R calls 0-Cloud
  options(repos = known)
})

# What a program will see: packages in the user's home may go or change while these are kept.
.libPaths(folder)

# Those on which `names` rest and that are here in too old a version: install.packages() would keep them.
outdated <- function(names, available) {
  fields <- c("Depends", "Imports", "LinkingTo")
  all <- unique(c(names, unlist(tools::package_dependencies(names, available, fields, recursive = TRUE))))
  entries <- unlist(strsplit(available[all[all %in% rownames(available)], fields], ","))
  parts <- regmatches(entries, regexec("^\\s*([[:alnum:].]+)\\s*\\(\\s*>=\\s*([0-9.-]+)\\s*\\)", entries))
  parts <- Filter(length, parts)
  here <- installed.packages()
  too_old <- Filter(function(part) {
    part[2] %in% rownames(here) && !here[part[2], "Priority"] %in% "base" &&
      package_version(here[part[2], "Version"]) < package_version(part[3])
  }, parts)
  unique(vapply(too_old, `[`, "", 2))
}

asked <- setdiff(wanted, rownames(installed.packages()))
options(warn = 1)
if (length(asked)) {
  available <- available.packages()
  install.packages(unique(c(asked, outdated(asked, available))), folder, available = available, type = "source",
                   Ncpus = if (nzchar(Sys.which("make"))) 2 else 1, INSTALL_opts = c("--no-docs", "--no-multiarch"))
}

missing <- asked[!file.exists(file.path(folder, asked, "DESCRIPTION"))]
if (length(missing)) {
  message("Not installed: ", paste(missing, collapse = ", "))
  quit(status = 1)
}

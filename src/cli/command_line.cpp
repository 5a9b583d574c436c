#include "cli/command_line.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <map>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "sandbox/runtime_config.h"

namespace llm_sandbox {
namespace {

/// What the command line asked for, before it is looked at.
struct Parsed {
  std::map<std::string, std::string> flags;  ///< by variable name
  std::string config_file;
  bool print_config = false;
  RunOptions run;
  std::string code;
  std::string language_name;
  CacheOptions cache;
};

void add_settings(CLI::App& app, Parsed& parsed) {
  for (const auto& setting : Settings::table()) {
    std::string help = setting.help;
    help += " [" + std::string(setting.variable) + "]";
    if (*setting.fallback != '\0') help += " (default " + std::string(setting.fallback) + ")";
    app.add_option_function<std::string>(
           "--" + std::string(setting.flag),
           [&parsed, variable = setting.variable](const std::string& value) { parsed.flags[variable] = value; }, help)
        ->group("Settings (flag, else environment variable, else configuration file)");
  }
  app.add_option("--config", parsed.config_file, "configuration file (JSON; keys are the flags' names with '_')");
  app.add_flag("--print-config", parsed.print_config, "show every setting's value and where it comes from");
}

CLI::App* add_run(CLI::App& app, Parsed& parsed) {
  CLI::App* run = app.add_subcommand("run", "Run one program in a sandbox and exit with its exit code");
  auto* file = run->add_option("FILE", parsed.run.file, "the program, '-' for stdin");
  run->add_option("-c,--code", parsed.code, "the program as text")->excludes(file);
  run->add_option("-l,--language", parsed.run.language, "default: by the file's ending, else python");
  run->add_option("--library", parsed.run.libraries, "a package that the program needs (may be given several times)")
      ->allow_extra_args(false);
  run->add_option("-t,--timeout", parsed.run.timeout_seconds, "seconds")
      ->check(CLI::Range(0.001, 86'400.0))
      ->capture_default_str();
  run->add_option("--plots", parsed.run.plots_folder, "folder to save the program's pictures in");
  run->add_flag("--json", parsed.run.json, "print the result as JSON instead of the program's output");
  return run;
}

CLI::App* add_cache(CLI::App& app, Parsed& parsed) {
  CLI::App* cache = app.add_subcommand("cache", "Show or remove the packages that were installed and kept");
  cache->require_subcommand(1);
  const auto add = [&](const char* name, const char* help) {
    CLI::App* command = cache->add_subcommand(name, help);
    command->add_option("LANGUAGE", parsed.cache.language, "only this language's");
    command->add_flag("--json", parsed.cache.json, "print JSON instead of a table");
    return command;
  };
  add("list", "Show what is kept, the most recently used first");
  add("clear", "Remove all that is not in use")->callback([&parsed] { parsed.cache.clear = true; });
  return cache;
}

/// The program's own log: stderr only, since stdout belongs to MCP.
void set_up_log(const std::string& level, bool quiet) {
  auto logger = spdlog::stderr_color_mt("llm-sandbox");
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %^%l%$ %v");
  spdlog::set_default_logger(logger);
  const auto parsed = spdlog::level::from_str(to_lower(level));
  const bool unknown = parsed == spdlog::level::off && to_lower(level) != "off";
  spdlog::set_level(unknown ? spdlog::level::info : quiet ? std::max(parsed, spdlog::level::warn) : parsed);
  if (unknown)
    spdlog::warn("'{}' is not a log level; using info (there are trace, debug, info, warn, error, off)", level);
}

/// Starting a sandbox takes some 40 descriptors for a moment, and many start at the same time.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

void warn_of_unknown_variables() {
  for (const auto& line : unknown_sandbox_variables(process_environment_names())) spdlog::warn("{}", line);
}

}  // namespace

int run_command_line(int argc, char** argv) {
  Parsed parsed;
  CLI::App app("llm-sandbox runs the code that AI assistants write in a sandbox. It is an MCP server.", "llm-sandbox");
  app.set_version_flag("--version", LLM_SANDBOX_VERSION);
  app.fallthrough();
  app.require_subcommand(0, 1);
  add_settings(app, parsed);
  app.add_subcommand("serve", "MCP server on stdin and stdout (the default when stdin is not a terminal)");
  CLI::App* run = add_run(app, parsed);
  CLI::App* languages = app.add_subcommand("languages", "Show which languages can be used here");
  languages->add_option("NAME", parsed.language_name, "one language in detail");
  CLI::App* cache = add_cache(app, parsed);
  CLI::App* doctor = app.add_subcommand("doctor", "Check each backend and say what is missing");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }

  const Settings settings(parsed.flags, parsed.config_file, process_environment());
  if (parsed.print_config) return print_config_command(settings);
  const bool serves = !run->parsed() && !languages->parsed() && !cache->parsed() && !doctor->parsed();
  if (serves && app.get_subcommands().empty() && is_terminal(STDIN_FILENO)) {
    write_all(STDOUT_FILENO, app.help());
    return 0;
  }
  set_up_log(settings.text("LLM_SANDBOX_LOG"), !serves && settings.get("LLM_SANDBOX_LOG")->origin == "default");
  warn_of_unknown_variables();
  raise_descriptor_limit();
  if (languages->parsed()) return languages_command(settings, parsed.language_name);
  if (cache->parsed()) return cache_command(settings, parsed.cache);
  if (doctor->parsed()) return doctor_command(settings);
  if (!run->parsed()) return serve_command(settings);

  if (run->count("--code") > 0) parsed.run.code = parsed.code;
  if (!parsed.run.code && parsed.run.file.empty()) {
    write_all(STDERR_FILENO, "llm-sandbox: run needs a FILE, '-' or --code TEXT.\n");
    return 2;
  }
  return run_command(settings, parsed.run);
}

}  // namespace llm_sandbox

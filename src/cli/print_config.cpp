#include <unistd.h>

#include "cli/commands.h"
#include "cli/terminal.h"

namespace llm_sandbox {

int print_config_command(const Settings& settings) {
  if (settings.error()) {
    write_all(STDERR_FILENO, "llm-sandbox: " + settings.error()->text() + "\n");
    return 2;
  }
  for (const auto& setting : Settings::table()) {
    const auto value = settings.get(setting.variable);
    const std::string shown = value ? value->text : "(not set)";
    const std::string origin = value ? value->origin : std::string();
    print(std::string(setting.variable) + " = " + shown + (value ? "  # " + origin : "") + "\n");
  }
  return 0;
}

}  // namespace llm_sandbox

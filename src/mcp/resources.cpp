#include "mcp/resources.h"

#include "mcp/json_writer.h"
#include "mcp/language_details.h"

namespace llm_sandbox::mcp {
namespace {

std::string all_language_details(Engine& engine) {
  std::string text;
  JsonWriter writer(text, 2);
  writer.begin_object();
  for (const Language& language : engine.languages().all()) {
    writer.key(language.name);
    write_language_details(writer, language, engine.report(language));
  }
  writer.end_object();
  return text;
}

}  // namespace

std::vector<Resource> make_resources(Engine& engine) {
  return {{"sandbox://languages", "language_details", "Language details",
           "What is installed of each language: versions, libraries, examples.", "application/json",
           [&engine] { return all_language_details(engine); }}};
}

}  // namespace llm_sandbox::mcp

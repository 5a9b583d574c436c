#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "sandbox/layer_cache.h"

namespace llm_sandbox {
namespace {

constexpr size_t kColumns = 5;
constexpr size_t kWidestTitle = 60;
using Row = std::array<std::string, kColumns>;

int complain(const Error& error, int status) {
  write_all(STDERR_FILENO, "llm-sandbox: " + error.text() + "\n");
  return status;
}

std::string time_text(std::chrono::system_clock::time_point time, const char* format, bool utc) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  utc ? gmtime_r(&seconds, &parts) : localtime_r(&seconds, &parts);
  char text[64];
  return {text, std::strftime(text, sizeof text, format, &parts)};
}

/// For a table: at most so many characters, with a sign that there were more.
std::string shortened(const std::string& text) {
  size_t end = 0;
  for (size_t count = 0; end < text.size(); ++count) {
    if (count == kWidestTitle) return text.substr(0, end) + "…";
    end += utf8_step(std::string_view(text).substr(end)).length;
  }
  return text;
}

size_t width_of(const std::string& text) {
  size_t count = 0;
  for (size_t at = 0; at < text.size(); ++count) at += utf8_step(std::string_view(text).substr(at)).length;
  return count;
}

Row row_of(const LayerInfo& layer) {
  const std::string used = layer.in_use ? "in use" : time_text(layer.used, "%Y-%m-%d %H:%M", false);
  return {printable(layer.description.language), printable(layer.description.kind),
          shortened(printable(layer.description.title)), format_bytes(layer.bytes), used};
}

void print_table(const std::vector<LayerInfo>& layers) {
  std::vector<Row> rows = {{"language", "kind", "title", "size", "last used"}};
  for (const auto& layer : layers) rows.push_back(row_of(layer));
  std::array<size_t, kColumns> widths{};
  for (const auto& row : rows)
    for (size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  for (size_t number = 0; number < rows.size(); ++number) {
    std::string line;
    for (size_t i = 0; i + 1 < kColumns; ++i)
      line += rows[number][i] + std::string(widths[i] - width_of(rows[number][i]) + 2, ' ');
    line += rows[number].back();
    print((number == 0 ? styled(STDOUT_FILENO, Style::kDim, line) : line) + "\n");
  }
}

void print_json(const std::vector<LayerInfo>& layers) {
  constexpr const char* kFormat = "%Y-%m-%dT%H:%M:%SZ";
  auto array = nlohmann::ordered_json::array();
  for (const auto& layer : layers)
    array.push_back({{"language", sanitize_utf8(layer.description.language)},
                     {"kind", sanitize_utf8(layer.description.kind)},
                     {"title", sanitize_utf8(layer.description.title)},
                     {"bytes", layer.bytes},
                     {"files", layer.files},
                     {"made", time_text(layer.made, kFormat, true)},
                     {"last_used", time_text(layer.used, kFormat, true)},
                     {"in_use", layer.in_use},
                     {"id", layer.id}});
  print(array.dump(2) + "\n");
}

/// "3 layers, 1.2 GiB"
std::string sum_of(const std::vector<LayerInfo>& layers) {
  uint64_t bytes = 0;
  for (const auto& layer : layers) bytes += layer.bytes;
  return std::to_string(layers.size()) + (layers.size() == 1 ? " layer, " : " layers, ") + format_bytes(bytes);
}

std::vector<LayerInfo> layers_of(const LayerCache& cache, const std::string& language) {
  auto layers = cache.list();
  if (!language.empty())
    std::erase_if(layers, [&](const LayerInfo& layer) { return layer.description.language != language; });
  return layers;
}

void list(const LayerCache& cache, const LayerCache::Options& options, const std::string& language, bool json) {
  const auto layers = layers_of(cache, language);
  if (json) return print_json(layers);
  if (!layers.empty()) print_table(layers);
  print(sum_of(layers) + " of at most " + format_bytes(options.max_bytes) + " in " + options.folder + "\n");
}

void clear(const LayerCache& cache, const LayerCache::Options& options, const std::string& language, bool json) {
  const auto removed = cache.clear(language);
  if (json) return print_json(removed);
  if (!removed.empty()) print_table(removed);
  print("Removed " + sum_of(removed) + " from " + options.folder + "\n");
  if (const auto rest = layers_of(cache, language); !rest.empty()) print("Still in use: " + sum_of(rest) + "\n");
}

}  // namespace

int cache_command(const Settings& settings, const CacheOptions& options) {
  if (settings.error()) return complain(*settings.error(), 2);
  const auto cache_options = settings.cache();
  if (!cache_options) return complain(cache_options.error(), 2);
  std::string language;
  if (!options.language.empty()) {
    const auto catalog = LanguageCatalog::built_in();
    const Language* found = catalog.find(options.language);
    if (found == nullptr)
      return complain({ErrorCode::kInvalidArgument, "unsupported language '" + options.language + "'. Supported are " +
                                                        join(catalog.names(), ", ") + "."},
                      2);
    language = found->name;
  }
  const LayerCache cache(*cache_options);
  if (const auto usable = cache.check(); !usable) return complain(usable.error(), 1);
  options.clear ? clear(cache, *cache_options, language, options.json)
                : list(cache, *cache_options, language, options.json);
  return 0;
}

}  // namespace llm_sandbox

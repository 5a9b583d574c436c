# Run once on the host by each ruby that could serve, with `-e`: says in one line of JSON what it is.
abort "it is #{RUBY_ENGINE}, not Ruby's own interpreter" unless RUBY_ENGINE == "ruby"

# What it loads at each start, for start.rb.
features = %w[rubygems bundled_gems error_highlight did_you_mean syntax_suggest/core_ext].select do |feature|
  $LOADED_FEATURES.any? { |file| file.end_with?("/#{feature}.rb") }
end

require "json"
require "rbconfig"

# Whether other users may look into a folder. A sandbox that root starts is another user.
def open?(folder)
  return true unless Process.euid.zero?

  folder = File.dirname(folder) while (open = File.stat(folder).mode & 5 == 5) && File.dirname(folder) != folder
  open
end

# "name version" of the newest of each gem that can be required, beyond those that are the standard library.
def libraries(places)
  Gem::Specification.latest_specs(true).map(&:to_spec).select do |spec|
    !spec.default_gem? && places.any? { |place| spec.base_dir.start_with?(place) } && whole?(spec)
  end.map { |spec| "#{spec.name} #{spec.version}" }.sort
end

# Whether it is there with all that it rests on. One seen before counts as whole, as gems may rest on each other.
def whole?(spec, seen = {})
  return true if seen.key?(spec.full_name)

  seen[spec.full_name] = true
  !spec.missing_extensions? && spec.runtime_dependencies.all? { |dependency| whole?(dependency.to_spec, seen) }
rescue LoadError
  false
end

config = RbConfig::CONFIG
users = Gem.user_dir
gems = (Gem.path - [users]).select { |folder| File.directory?(folder) }
shows_users = File.directory?(users) && open?(users)
paths = [config["prefix"], config["rubylibdir"], config["rubyarchdir"], config["sitedir"], config["vendordir"]]
paths += $LOAD_PATH + gems
paths = (paths.compact.select { |folder| File.directory?(folder) } + (shows_users ? [users] : [])).uniq
paths.reject! { |folder| paths.any? { |other| folder.start_with?("#{other}/") } }

files = { features: features.join("\n") }
files[:user_gems] = users if shows_users

puts
puts JSON.generate(
  executable: File.realpath(RbConfig.ruby),
  version: RUBY_VERSION,
  paths: paths,
  libraries: libraries(paths),
  files: files.transform_values { |text| text.unpack1("H*") },
  virtual: false,
)

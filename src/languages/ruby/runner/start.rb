# Gets in before the user's program (by -r), so that what it prints is seen at once, and leaves no trace.
$stdout.sync = true

# What `gem install` put into the user's home, which is another one in a sandbox (see describe.rb).
users = File.join(__dir__, "user_gems")
Gem.paths = { "GEM_PATH" => [*Gem.path, File.read(users)].join(File::PATH_SEPARATOR) } if File.exist?(users)

# It counts as loaded only once it has ended.
this = __FILE__
first_line = TracePoint.new(:line) do
  first_line.disable
  $LOADED_FEATURES.delete(this)
end
first_line.enable

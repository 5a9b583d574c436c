# Started as `ruby --disable-gems -r start.rb PROGRAM`: does what ruby does at its start, but with files that prepare.rb
# has compiled, lets the program's output be seen at once, and leaves no trace.
compiled =
  begin
    Marshal.load(File.binread("/opt/llm-sandbox/prepared/compiled"))
  rescue SystemCallError
    {}
  end

loader = RubyVM::InstructionSequence.singleton_class
loader.define_method(:load_iseq) do |file|
  size, mtime, binary = compiled.delete(file)
  status = File.stat(file) if binary
  load_from_binary(binary) if status && status.size == size && status.mtime == mtime
end
File.foreach("#{__dir__}/features", chomp: true) { |feature| require feature }
loader.remove_method(:load_iseq)

$stdout.sync = true

# What `gem install` put into the user's home, which is another one in a sandbox (see describe.rb).
users = "#{__dir__}/user_gems"
Gem.paths = { "GEM_PATH" => [*Gem.path, File.read(users)].join(File::PATH_SEPARATOR) } if File.exist?(users)

# It counts as loaded only once it has ended.
this = __FILE__
first_line = TracePoint.new(:line) do
  first_line.disable
  $LOADED_FEATURES.delete(this)
end
first_line.enable

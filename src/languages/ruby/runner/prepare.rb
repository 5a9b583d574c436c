# Started as `ruby prepare.rb FOLDER`: compiles what ruby loads at each start.
files = $LOADED_FEATURES.select { |file| file.end_with?(".rb") && File.file?(file) }
compiled = files.to_h do |file|
  status = File.stat(file)
  [file, [status.size, status.mtime, RubyVM::InstructionSequence.compile_file(file).to_binary]]
end
File.binwrite(File.join(ARGV.fetch(0), "compiled"), Marshal.dump(compiled))

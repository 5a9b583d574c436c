# Started as `ruby install.rb FOLDER NAME...`: `gem install`, those of a certain version first and nothing newer than needed
# for the others, so that these take them.
require "rubygems/gem_runner"

folder, *names = ARGV
certain, others = names.partition { |name| name.include?(":") }
Gem::GemRunner.new.run(
  ["install", "--install-dir", folder, "--no-user-install", "--no-document", "--minimal-deps", *certain, *others],
)

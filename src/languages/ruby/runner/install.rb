# Started as `ruby install.rb NAME...`: `gem install` into GEM_HOME, those of a certain version first and nothing newer than
# needed for the others, so that these take them. (With --install-dir gem would not look at what it has installed.)
require "rubygems/gem_runner"

certain, others = ARGV.partition { |name| name.include?(":") }
Gem::GemRunner.new.run(["install", "--no-user-install", "--no-document", "--minimal-deps", *certain, *others])

# Started as `ruby install.rb NAME...`: `gem install` into GEM_HOME, those of a certain version first and nothing newer
# than needed for the others, so that these take them. (With --install-dir gem would not look at what it has installed.)
require "rubygems/gem_runner"

options = ["--no-user-install", "--no-document", "--minimal-deps"]
options += ["--http-proxy", ENV["http_proxy"]] if ENV["http_proxy"] # whatever .gemrc says: there is no other way out
certain, others = ARGV.partition { |name| name.include?(":") }
Gem::GemRunner.new.run(["install", *options, *certain, *others])

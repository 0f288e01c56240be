# Not tried: `url` and `sha256` stand for the source archive of a published release.
class Kvfair < Formula
  desc "Compare key/value stores by a real job, on this machine"
  homepage "https://example.invalid/kvfair"
  url "https://example.invalid/kvfair/archive/v0.2.0.tar.gz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license any_of: ["MIT", "Apache-2.0"]

  depends_on "rust" => :build

  def install
    system "cargo", "install", "--features", "full", *std_cargo_args
    system bin/"kvfair", "manual", buildpath/"manual"
    man1.install Dir["manual/man/*.1"]
    bash_completion.install "manual/completions/kvfair.bash" => "kvfair"
    zsh_completion.install "manual/completions/_kvfair"
    fish_completion.install "manual/completions/kvfair.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/kvfair --version")
  end
end

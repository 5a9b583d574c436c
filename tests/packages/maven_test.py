"""Java packages by Maven: from a small repository that the test makes, and from the real one."""

import os
import shutil
import subprocess
import unittest

import support
from support import FileServer, PackageTest

SAYS_HELLO = """
import org.example.greeting.Greeting;

public class Main {
    public static void main(String[] args) {
        System.out.println(Greeting.to("Ada"));
    }
}
"""
SOURCES = {
    "words": "package org.example.words; public class Words { public static String hello() { return \"Hello\"; } }",
    "greeting": "package org.example.greeting; public class Greeting { public static String to(String name) {"
                " return org.example.words.Words.hello() + \", \" + name; } }",
}


def require_tools():
    for tool in ("mvn", "javac", "jar"):
        if shutil.which(tool) is None:
            raise unittest.SkipTest(f"skipped: {tool}")


def publish(repository, work, artifact, version, dependencies=()):
    """A jar with its pom where Maven looks for them. Needs what it depends on to be compiled already."""
    classes = os.path.join(work, artifact)
    source = os.path.join(work, f"{artifact.capitalize()}.java")
    with open(source, "w", encoding="utf-8") as file:
        file.write(SOURCES[artifact])
    needed = ":".join(os.path.join(work, name) for name, _ in dependencies) or classes
    subprocess.run(["javac", "--release", "11", "-d", classes, "-cp", needed, source], check=True)
    folder = os.path.join(repository, "org", "example", artifact, version)
    os.makedirs(folder)
    name = os.path.join(folder, f"{artifact}-{version}")
    subprocess.run(["jar", "--create", "--file", name + ".jar", "-C", classes, "."], check=True)
    listed = "".join(f"<dependency><groupId>org.example</groupId><artifactId>{other}</artifactId>"
                     f"<version>{its_version}</version></dependency>" for other, its_version in dependencies)
    with open(name + ".pom", "w", encoding="utf-8") as file:
        file.write("<project><modelVersion>4.0.0</modelVersion><groupId>org.example</groupId>"
                   f"<artifactId>{artifact}</artifactId><version>{version}</version>"
                   f"<dependencies>{listed}</dependencies></project>")


class LocalRepository(PackageTest):
    """The user's settings name a repository on this machine as the mirror of all others, and a proxy of the user's."""

    language = "java"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        require_tools()
        repository = os.path.join(cls.folder, "repository")
        work = os.path.join(cls.folder, "work")
        os.makedirs(work)
        publish(repository, work, "words", "2.0")
        publish(repository, work, "greeting", "1.0", [("words", "2.0")])
        cls.server = cls.enterClassContext(FileServer(repository))
        home = os.path.join(cls.folder, "home")
        os.makedirs(os.path.join(home, ".m2"))
        with open(os.path.join(home, ".m2", "settings.xml"), "w", encoding="utf-8") as file:
            file.write(f"""<settings xmlns="http://maven.apache.org/SETTINGS/1.2.0">
  <proxies>
    <proxy><protocol>http</protocol><host>proxy.invalid</host><port>1</port></proxy>
  </proxies>
  <mirrors>
    <mirror><id>mine</id><mirrorOf>*</mirrorOf><url>{cls.server.url}</url></mirror>
  </mirrors>
</settings>
""")
        cls.environment = {**os.environ, "HOME": home}

    def test_with_what_it_depends_on_and_only_once(self):
        self.assertPrints("Hello, Ada\n", self.run_program(SAYS_HELLO, "org.example:greeting:1.0"))
        asked = len(self.server.requests)
        self.assertGreater(asked, 0)
        self.assertPrints("Hello, Ada\n", self.run_program(SAYS_HELLO, "org.example:greeting:1.0"))
        self.assertEqual(len(self.server.requests), asked)

    def test_several_and_without_a_network_for_the_program(self):
        code = """
            class Main { public static void main(String[] a) throws Exception {
              System.out.println(org.example.words.Words.hello());
              System.out.println(Main.class.getResource("/org/example/greeting/Greeting.class") != null);
              System.out.println(System.getProperty("java.class.path").matches(".*greeting.*words.*"));
              try { new java.net.Socket("127.0.0.1", PORT); System.out.println("reached"); }
              catch (java.io.IOException e) { System.out.println("no network"); }
            } }""".replace("PORT", str(self.server.port))
        self.assertPrints("Hello\ntrue\ntrue\nno network\n",
                          self.run_program(code, "org.example:greeting:1.0", "org.example:words:2.0"))

    def test_a_version_that_does_not_exist_is_told_by_maven(self):
        self.assertNotRun("install_failed", "Could not find artifact org.example:greeting:jar:9.9",
                          self.run_program(SAYS_HELLO, "org.example:greeting:9.9"))

    def test_names_are_checked(self):
        for name in ("greeting", "org.example:greeting", "-Dx=y:a:1", "org.example:greeting:1.0:extra:more",
                     "org.example:greeting:[1,2)", "org.example:${user.home}:1", "http://127.0.0.1/a.jar",
                     "org.example:greeting:1.0 -X", "../a:b:1", "org.example:<b/>:1"):
            with self.subTest(name=name):
                asked = len(self.server.requests)
                self.assertNotRun("invalid_argument", "", self.run_program(SAYS_HELLO, name))
                self.assertEqual(len(self.server.requests), asked)

    def test_an_error_of_the_program_is_not_one_of_the_installing(self):
        answer = self.run_program("class Main { int x = missing; }", "org.example:words:2.0")
        self.assertNotRun("compile_failed", "Main.java:1: error: cannot find symbol", answer)


class Central(PackageTest):
    """The registry that the user has set, Maven Central if none."""

    language = "java"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        require_tools()
        project = os.path.join(cls.folder, "project")
        os.makedirs(project)
        with open(os.path.join(project, "pom.xml"), "w", encoding="utf-8") as file:
            file.write("<project><modelVersion>4.0.0</modelVersion><parent><groupId>org.apache</groupId>"
                       "<artifactId>apache</artifactId><version>31</version><relativePath/></parent>"
                       "<artifactId>asks</artifactId><packaging>pom</packaging></project>")
        support.require_registry("mvn", "--batch-mode", "-f", project,
                                 "-Dmaven.repo.local=" + os.path.join(project, "local"), "validate")

    def test_a_package(self):
        code = """
            import org.apache.commons.lang3.StringUtils;
            public class Main { public static void main(String[] args) {
              System.out.println(StringUtils.capitalize("real package"));
            } }"""
        self.assertPrints("Real package\n", self.run_program(code, "org.apache.commons:commons-lang3:3.14.0"))

    def test_a_package_with_dependencies(self):
        code = """
            import com.fasterxml.jackson.databind.ObjectMapper;
            public class Main {
              public record Point(int x, int y) { }
              public static void main(String[] args) throws Exception {
                System.out.println(new ObjectMapper().writeValueAsString(new Point(1, 2)));
              }
            }"""
        self.assertPrints('{"x":1,"y":2}\n',
                          self.run_program(code, "com.fasterxml.jackson.core:jackson-databind:2.17.0"))

    def test_one_that_writes_code_while_compiling(self):
        code = """
            import lombok.Data;
            public class Main {
              @Data static class Person { private final String name; }
              public static void main(String[] args) { System.out.println(new Person("Ada").getName()); }
            }"""
        self.assertPrints("Ada\n", self.run_program(code, "org.projectlombok:lombok:1.18.42"))

    def test_a_version_that_does_not_exist(self):
        self.assertNotRun("install_failed", "Could not find artifact org.apache.commons:commons-lang3:jar:99.0",
                          self.run_program("class Main { }", "org.apache.commons:commons-lang3:99.0"))


if __name__ == "__main__":
    support.main()

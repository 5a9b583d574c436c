import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.parsers.ParserConfigurationException;
import javax.xml.transform.TransformerException;
import javax.xml.transform.TransformerFactory;
import javax.xml.transform.dom.DOMSource;
import javax.xml.transform.stream.StreamResult;
import org.w3c.dom.Document;
import org.w3c.dom.Element;
import org.w3c.dom.Node;
import org.w3c.dom.NodeList;
import org.xml.sax.SAXException;

/**
 * Installs packages with the Maven of this machine: {@code java InstallPackages.java RUNNER MVN PACKAGES NAME...},
 * where NAME is group:artifact:version. Works in the working folder, which is empty at first; fills PACKAGES with jars/
 * and class-path.
 */
public final class InstallPackages {
  private static final Path WORK = Path.of("").toAbsolutePath();
  private static final String TRUST_STORE_PASSWORD = "changeit"; // holds nothing secret

  public static void main(String[] args) throws Exception {
    Path runner = Path.of(args[0]);
    Path tool = Path.of(args[1]);
    Path packages = Path.of(args[2]);
    Path maven = mavenHome(tool);
    writeProject(Arrays.asList(args).subList(3, args.length));

    List<String> command = new ArrayList<>(List.of(
        tool.toString(), "--batch-mode", "--quiet", "-Dstyle.color=never",
        "-Dmaven.repo.local=" + WORK.resolve("repository"),
        "-Dmaven.ext.class.path=" + makeExtension(maven, runner.resolve("CollectJars.java")),
        "-Dllm_sandbox.packages=" + packages,
        "--settings", settings(Path.of(System.getenv("HOME"), ".m2", "settings.xml"), "user").toString(),
        "--global-settings", settings(maven.resolve("conf/settings.xml"), "global").toString()));
    command.addAll(trustOptions());
    command.add("validate"); // no plugin takes part in that phase
    System.exit(run(command));
  }

  private static int run(List<String> command) throws IOException, InterruptedException {
    ProcessBuilder maven = new ProcessBuilder(command).directory(WORK.toFile()).redirectErrorStream(true);
    Map<String, String> environment = maven.environment();
    environment.put("JAVA_HOME", System.getProperty("java.home"));
    environment.put("MAVEN_SKIP_RC", "true");
    environment.remove("MAVEN_ARGS");
    environment.merge("MAVEN_OPTS", "-Xmx768m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData",
        (users, ours) -> users + " " + ours);
    Process running = maven.start();
    running.getOutputStream().close();
    passOn(running);
    return running.waitFor();
  }

  /** Without the colours that a terminal would show: some Mavens write their codes whatever they are told. */
  private static void passOn(Process maven) throws IOException {
    try (BufferedReader lines =
        new BufferedReader(new InputStreamReader(maven.getInputStream(), StandardCharsets.UTF_8))) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        String plain = line.replaceAll("\u001b\\[[0-9;]*m", "");
        if (!plain.isEmpty()) System.out.println(plain);
      }
    }
  }

  /** The folder with Maven's lib/ and conf/. */
  private static Path mavenHome(Path tool) throws IOException {
    Path prefix = tool.toRealPath().getParent().getParent();
    for (Path home : List.of(prefix, prefix.resolve("libexec"))) // Homebrew's mvn is a script beside libexec/
      if (Files.isDirectory(home.resolve("lib"))) return home;
    System.err.println(tool + " is not in a Maven installation: there is no " + prefix.resolve("lib") + ".");
    System.exit(1);
    return prefix;
  }

  private static void writeProject(List<String> names) throws Exception {
    Document pom = DocumentBuilderFactory.newInstance().newDocumentBuilder().newDocument();
    Element project = pom.createElement("project");
    pom.appendChild(project);
    addText(project, "modelVersion", "4.0.0");
    addText(project, "groupId", "llm-sandbox");
    addText(project, "artifactId", "packages");
    addText(project, "version", "1");
    addText(project, "packaging", "pom");
    Element dependencies = add(project, "dependencies");
    for (String name : names) {
      String[] parts = name.split(":");
      Element dependency = add(dependencies, "dependency");
      addText(dependency, "groupId", parts[0]);
      addText(dependency, "artifactId", parts[1]);
      addText(dependency, "version", parts[2]);
    }
    write(pom, WORK.resolve("pom.xml"));
  }

  /** Compiled against the very Maven that it goes into. */
  private static Path makeExtension(Path maven, Path source) throws IOException {
    Path extension = Files.createDirectories(WORK.resolve("extension"));
    List<String> jars = new ArrayList<>();
    try (DirectoryStream<Path> found = Files.newDirectoryStream(maven.resolve("lib"), "*.jar")) {
      for (Path jar : found) jars.add(jar.toString());
    }
    JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
    int status = compiler.run(null, null, null, "-proc:none", "-nowarn", "-XDsuppressNotes",
        "-d", extension.toString(), "-cp", String.join(":", jars), source.toString());
    if (status != 0) {
      System.err.println("The Maven in " + maven + " is not one that this program can work with.");
      System.exit(1);
    }
    Path description = extension.resolve("META-INF/plexus/components.xml");
    Files.createDirectories(description.getParent());
    Files.writeString(description,
        "<component-set><components><component>"
            + "<role>org.apache.maven.AbstractMavenLifecycleParticipant</role>"
            + "<role-hint>llm-sandbox</role-hint>"
            + "<implementation>CollectJars</implementation>"
            + "<requirements><requirement>"
            + "<role>org.apache.maven.project.ProjectDependenciesResolver</role><field-name>resolver</field-name>"
            + "</requirement></requirements>"
            + "</component></components></component-set>");
    return extension;
  }

  /** The user's settings, but with the way out that the sandbox has in place of the user's own proxies. */
  private static Path settings(Path users, String name) throws Exception {
    Document document = parsed(users);
    String proxy = System.getenv("https_proxy");
    if (proxy != null && !proxy.isEmpty()) replaceProxies(document.getDocumentElement(), URI.create(proxy));
    return write(document, WORK.resolve(name + "-settings.xml"));
  }

  private static Document parsed(Path settings) throws ParserConfigurationException, SAXException, IOException {
    DocumentBuilderFactory factory = DocumentBuilderFactory.newInstance();
    if (Files.isReadable(settings)) return factory.newDocumentBuilder().parse(settings.toFile());
    Document empty = factory.newDocumentBuilder().newDocument();
    empty.appendChild(empty.createElement("settings"));
    return empty;
  }

  private static void replaceProxies(Element settings, URI way) {
    NodeList old = settings.getElementsByTagName("proxies");
    while (old.getLength() > 0) old.item(0).getParentNode().removeChild(old.item(0));
    Element proxies = add(settings, "proxies");
    for (String protocol : List.of("http", "https")) {
      Element proxy = add(proxies, "proxy");
      addText(proxy, "id", "llm-sandbox-" + protocol);
      addText(proxy, "active", "true");
      addText(proxy, "protocol", protocol);
      addText(proxy, "host", way.getHost());
      addText(proxy, "port", Integer.toString(way.getPort()));
    }
  }

  /** In the namespace of its parent, or Maven would not see it. */
  private static Element add(Node parent, String name) {
    Document document = parent.getOwnerDocument();
    Element element = document.createElementNS(parent.getNamespaceURI(), name);
    parent.appendChild(element);
    return element;
  }

  private static void addText(Node parent, String name, String text) {
    add(parent, name).setTextContent(text);
  }

  private static Path write(Document document, Path file) throws TransformerException {
    TransformerFactory.newInstance().newTransformer()
        .transform(new DOMSource(document), new StreamResult(file.toFile()));
    return file;
  }

  /** A JVM reads no SSL_CERT_FILE: its own trusted certificates and the user's together. */
  private static List<String> trustOptions() throws IOException, GeneralSecurityException {
    List<Path> files = certificateFiles();
    if (files.isEmpty()) return List.of();
    KeyStore store = KeyStore.getInstance(Path.of(System.getProperty("java.home"), "lib/security/cacerts").toFile(),
        (char[]) null);
    CertificateFactory factory = CertificateFactory.getInstance("X.509");
    for (Path file : files) addCertificates(store, factory, file);
    Path path = WORK.resolve("trusted");
    try (OutputStream out = Files.newOutputStream(path)) {
      store.store(out, TRUST_STORE_PASSWORD.toCharArray());
    }
    return List.of(
        "-Djavax.net.ssl.trustStore=" + path,
        "-Djavax.net.ssl.trustStoreType=" + store.getType(),
        "-Djavax.net.ssl.trustStorePassword=" + TRUST_STORE_PASSWORD);
  }

  private static List<Path> certificateFiles() throws IOException {
    List<Path> files = new ArrayList<>();
    String file = System.getenv("SSL_CERT_FILE");
    if (file != null && Files.isReadable(Path.of(file))) files.add(Path.of(file));
    String folder = System.getenv("SSL_CERT_DIR");
    // The system's own folder holds again what its bundle holds.
    if (folder == null || folder.equals("/etc/ssl/certs") || !Files.isDirectory(Path.of(folder))) return files;
    try (DirectoryStream<Path> found = Files.newDirectoryStream(Path.of(folder), Files::isRegularFile)) {
      for (Path each : found) files.add(each);
    }
    return files;
  }

  private static final Pattern PEM =
      Pattern.compile("-----BEGIN (?:TRUSTED )?CERTIFICATE-----([^-]*)-----END (?:TRUSTED )?CERTIFICATE-----");

  private static void addCertificates(KeyStore store, CertificateFactory factory, Path file)
      throws IOException, GeneralSecurityException {
    Matcher blocks = PEM.matcher(new String(Files.readAllBytes(file), StandardCharsets.ISO_8859_1));
    while (blocks.find()) {
      byte[] bytes = Base64.getMimeDecoder().decode(blocks.group(1));
      Certificate certificate = factory.generateCertificate(new ByteArrayInputStream(bytes));
      if (store.getCertificateAlias(certificate) == null)
        store.setCertificateEntry("llm-sandbox-" + store.size(), certificate);
    }
  }
}

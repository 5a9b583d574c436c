import com.sun.source.tree.ClassTree;
import com.sun.source.tree.CompilationUnitTree;
import com.sun.source.tree.Tree;
import com.sun.source.util.JavacTask;
import com.sun.source.util.TaskEvent;
import com.sun.source.util.TaskListener;
import java.io.IOException;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Stream;
import javax.lang.model.SourceVersion;
import javax.lang.model.element.Element;
import javax.lang.model.element.ElementKind;
import javax.lang.model.element.ExecutableElement;
import javax.lang.model.element.Modifier;
import javax.lang.model.element.TypeElement;
import javax.lang.model.type.TypeKind;
import javax.lang.model.type.TypeMirror;
import javax.lang.model.util.ElementFilter;
import javax.lang.model.util.Elements;
import javax.lang.model.util.Types;
import javax.tools.ForwardingJavaFileObject;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileObject;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;

/**
 * Compiles a program as javac would, but for what its file and public classes are called, and writes down how
 * {@code java} is to run it: {@code java @BUILD/run.args} then runs the class that holds main.
 *
 * <p>Arguments: FILE BUILD MEMORY [PACKAGES], where MEMORY is the sandbox's limit in bytes and PACKAGES what
 * InstallPackages filled.
 *
 * <p>Kept to Java 11, as it is compiled by whatever JDK it serves.
 */
public final class CompileProgram {
  private static final int FEATURE = Runtime.version().feature();
  private static final long DEFAULT_MEMORY = 1L << 30;

  public static void main(String[] args) throws IOException {
    PrintStream err = new PrintStream(System.err, true, StandardCharsets.UTF_8);
    Path file = Path.of(args[0]);
    Path classes = Files.createDirectories(Path.of(args[1], "classes"));
    List<String> packages = args.length > 3 ? installed(Path.of(args[3])) : List.of();

    Compilation compilation = compile(file, classes, packages, false);
    if (compilation.wantsPreview()) compilation = compile(file, classes, packages, true);
    err.print(compilation.messages());
    if (!compilation.succeeded) System.exit(1);

    Optional<Launch> launch = compilation.mains.first();
    if (launch.isEmpty()) {
      err.println(file.getFileName() + ": error: " + compilation.mains.whyNone());
      System.exit(1);
    }
    boolean preview = compilation.preview || launch.get().needsPreview();
    List<String> lines = runArguments(classPath(classes, packages), launch.get().className, memory(args[2]), preview);
    Files.write(Path.of(args[1], "run.args"), lines, StandardCharsets.UTF_8);
  }

  /** The jars of installed packages, in the order in which Maven puts them. */
  private static List<String> installed(Path packages) throws IOException {
    List<String> jars = new ArrayList<>();
    for (String name : Files.readAllLines(packages.resolve("class-path"))) jars.add(packages.resolve(name).toString());
    return jars;
  }

  /** The program's folder is on it because {@code java} alone has it there: resources beside the program are found. */
  private static String classPath(Path classes, List<String> packages) {
    List<String> places = new ArrayList<>(List.of(classes.toString(), "."));
    places.addAll(packages);
    return String.join(":", places);
  }

  private static long memory(String bytes) {
    return bytes.matches("[0-9]{1,18}") ? Long.parseLong(bytes) : DEFAULT_MEMORY;
  }

  /**
   * The JVM does not see the sandbox's limit. Beside the heap it needs room for classes, compiled code and stacks; a
   * program that wants too much then ends with an OutOfMemoryError that says where, not by a kill.
   */
  private static List<String> runArguments(String classPath, String mainClass, long memory, boolean preview) {
    List<String> lines = new ArrayList<>();
    lines.add("-Xmx" + memory * 70 / 100 / 1024 + "k");
    lines.add("-XX:-UsePerfData");
    lines.add("-XX:-CreateCoredumpOnCrash");
    lines.add("-XX:ErrorFile=/tmp/hs_err.log");
    if (preview) lines.add("--enable-preview");
    lines.add("-cp");
    lines.add(quoted(classPath));
    lines.add(quoted(mainClass));
    return lines;
  }

  /** For java's argument files. */
  private static String quoted(String text) {
    return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
  }

  private static Compilation compile(Path file, Path classes, List<String> packages, boolean preview)
      throws IOException {
    List<String> options = new ArrayList<>(List.of(
        "-d", classes.toString(),
        "-cp", classPath(classes, packages),
        // The program is all the source there is: a missing class Main is not looked for in Main.java once more.
        "-sourcepath", ""));
    // Without packages there is nothing that could process annotations; with them javac 23 and later would not look.
    if (packages.isEmpty()) options.add("-proc:none");
    else if (FEATURE >= 23) options.add("-proc:full");
    if (preview) options.addAll(List.of("--enable-preview", "--release", Integer.toString(FEATURE)));

    JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
    StringWriter messages = new StringWriter();
    try (StandardJavaFileManager files =
        compiler.getStandardFileManager(null, Locale.ROOT, StandardCharsets.UTF_8)) {
      // By its name alone, as messages show it: the program lies in the working folder.
      JavaFileObject program = new AnyName(files.getJavaFileObjects(file.getFileName().toString()).iterator().next());
      JavacTask task =
          (JavacTask) compiler.getTask(new PrintWriter(messages), files, null, options, null, List.of(program));
      Mains mains = new Mains(task);
      task.addTaskListener(mains);
      boolean succeeded = task.call();
      return new Compilation(succeeded, messages, mains, preview);
    }
  }

  /** What came of a compilation. */
  private static final class Compilation {
    final boolean succeeded;
    final StringWriter messages;
    final Mains mains;
    final boolean preview;

    Compilation(boolean succeeded, StringWriter messages, Mains mains, boolean preview) {
      this.succeeded = succeeded;
      this.messages = messages;
      this.mains = mains;
      this.preview = preview;
    }

    String messages() {
      return messages.toString();
    }

    /** A wrong "yes" (the program's own text is quoted in messages) costs a second try, no more. */
    boolean wantsPreview() {
      return !succeeded && messages().contains("(use --enable-preview to enable");
    }
  }

  /** The program under whatever name its public classes ask for; it is no module-info or package-info. */
  private static final class AnyName extends ForwardingJavaFileObject<JavaFileObject> {
    AnyName(JavaFileObject file) {
      super(file);
    }

    @Override
    public boolean isNameCompatible(String simpleName, Kind kind) {
      return kind == Kind.SOURCE && SourceVersion.isIdentifier(simpleName);
    }
  }

  /** A class to start. */
  private static final class Launch {
    final String className;
    final Way way;

    Launch(String className, Way way) {
      this.className = className;
      this.way = way;
    }

    /** Java 21 to 24 have instance main methods as a preview. */
    boolean needsPreview() {
      return way == Way.INSTANCE && FEATURE < 25;
    }
  }

  /** How a class can be started, best first. */
  private enum Way { DECLARED, INHERITED, INSTANCE }

  /** Notes, while javac works, which top-level classes of the program can be started. */
  private static final class Mains implements TaskListener {
    private final Elements elements;
    private final Types types;
    private final List<String> order = new ArrayList<>();
    private final Map<String, Way> ways = new HashMap<>();
    private String nearMiss = "";

    Mains(JavacTask task) {
      elements = task.getElements();
      types = task.getTypes();
    }

    @Override
    public void finished(TaskEvent event) {
      if (event.getKind() == TaskEvent.Kind.PARSE && order.isEmpty()) noteOrder(event.getCompilationUnit());
      if (event.getKind() == TaskEvent.Kind.ANALYZE && event.getTypeElement() != null) look(event.getTypeElement());
    }

    /** The first in the file among those that can be started in the best way there is. */
    Optional<Launch> first() {
      for (Way way : Way.values())
        for (String name : order)
          if (ways.get(name) == way) return Optional.of(new Launch(name, way));
      return Optional.empty();
    }

    String whyNone() {
      return "there is no main method to start. Write \"public static void main(String[] args)\" in a top-level class, "
          + "record, enum or interface." + nearMiss;
    }

    private void noteOrder(CompilationUnitTree unit) {
      String prefix = unit.getPackageName() == null ? "" : unit.getPackageName() + ".";
      for (Tree declaration : unit.getTypeDecls())
        if (declaration instanceof ClassTree) order.add(prefix + ((ClassTree) declaration).getSimpleName());
    }

    private void look(TypeElement type) {
      String name = type.getQualifiedName().toString();
      Way way = wayOf(type);
      if (way != null) ways.put(name, way);
      else if (order.contains(name)) noteNearMiss(type);
    }

    private Way wayOf(TypeElement type) {
      if (mainsAmong(type.getEnclosedElements()).anyMatch(this::isClassic)) return Way.DECLARED;
      List<? extends Element> all = elements.getAllMembers(type);
      if (type.getKind() != ElementKind.INTERFACE && mainsAmong(all).anyMatch(this::isClassic)) return Way.INHERITED;
      boolean canBeMade = canBeMade(type);
      if (FEATURE >= 21 && mainsAmong(all).anyMatch(main -> isInstanceStyle(main, canBeMade))) return Way.INSTANCE;
      return null;
    }

    private static Stream<ExecutableElement> mainsAmong(List<? extends Element> members) {
      return ElementFilter.methodsIn(members).stream().filter(method -> method.getSimpleName().contentEquals("main"));
    }

    private boolean isClassic(ExecutableElement main) {
      return main.getModifiers().containsAll(Set.of(Modifier.PUBLIC, Modifier.STATIC))
          && main.getReturnType().getKind() == TypeKind.VOID
          && takesStrings(main);
    }

    private boolean isInstanceStyle(ExecutableElement main, boolean canBeMade) {
      return !main.getModifiers().contains(Modifier.PRIVATE)
          && !main.getModifiers().contains(Modifier.ABSTRACT)
          && (canBeMade || main.getModifiers().contains(Modifier.STATIC))
          && main.getReturnType().getKind() == TypeKind.VOID
          && (main.getParameters().isEmpty() || takesStrings(main));
    }

    private boolean takesStrings(ExecutableElement main) {
      if (main.getParameters().size() != 1) return false;
      TypeMirror strings = types.getArrayType(elements.getTypeElement("java.lang.String").asType());
      return types.isSameType(types.erasure(main.getParameters().get(0).asType()), strings);
    }

    private static boolean canBeMade(TypeElement type) {
      return type.getKind() != ElementKind.ENUM
          && !type.getModifiers().contains(Modifier.ABSTRACT)
          && ElementFilter.constructorsIn(type.getEnclosedElements()).stream()
              .anyMatch(made -> made.getParameters().isEmpty() && !made.getModifiers().contains(Modifier.PRIVATE));
    }

    /** A main that was meant, perhaps, for the sentence. */
    private void noteNearMiss(TypeElement type) {
      if (!nearMiss.isEmpty()) return;
      if (mainsAmong(type.getEnclosedElements()).findAny().isPresent())
        nearMiss = " The main of " + type.getSimpleName() + " is not declared like that.";
      for (TypeElement inner : ElementFilter.typesIn(type.getEnclosedElements()))
        if (mainsAmong(inner.getEnclosedElements()).anyMatch(this::isClassic))
          nearMiss = " The one in " + inner.getQualifiedName() + " does not count, as that class lies in another one.";
    }
  }
}

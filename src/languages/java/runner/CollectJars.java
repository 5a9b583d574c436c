import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import org.apache.maven.AbstractMavenLifecycleParticipant;
import org.apache.maven.MavenExecutionException;
import org.apache.maven.execution.MavenSession;
import org.apache.maven.project.DefaultDependencyResolutionRequest;
import org.apache.maven.project.DependencyResolutionException;
import org.apache.maven.project.MavenProject;
import org.apache.maven.project.ProjectDependenciesResolver;
import org.eclipse.aether.AbstractRepositoryListener;
import org.eclipse.aether.DefaultRepositorySystemSession;
import org.eclipse.aether.RepositoryEvent;
import org.eclipse.aether.graph.Dependency;

/**
 * Put into Maven by InstallPackages: copies the project's dependencies, with theirs, into the folder that the property
 * llm_sandbox.packages names, and lists them there in class path order. Maven's dependency plugin does the same but is
 * itself downloaded, with dozens of jars.
 */
public final class CollectJars extends AbstractMavenLifecycleParticipant {
  private ProjectDependenciesResolver resolver;

  @Override
  public void afterProjectsRead(MavenSession session) throws MavenExecutionException {
    MavenProject project = session.getCurrentProject();
    Path packages = Path.of(session.getUserProperties().getProperty("llm_sandbox.packages"));
    try {
      copy(dependencies(session, project), packages);
    } catch (DependencyResolutionException error) {
      throw new MavenExecutionException(error.getMessage(), error);
    } catch (IOException error) {
      throw new MavenExecutionException("cannot copy to " + packages + ": " + error, error);
    }
  }

  private List<Dependency> dependencies(MavenSession session, MavenProject project)
      throws DependencyResolutionException {
    DefaultRepositorySystemSession telling = new DefaultRepositorySystemSession(session.getRepositorySession());
    telling.setRepositoryListener(new Progress());
    return resolver.resolve(new DefaultDependencyResolutionRequest(project, telling)).getResolvedDependencies();
  }

  /** A line for each file, for whoever waits. Maven itself is told to be quiet, as its own lines are many. */
  private static final class Progress extends AbstractRepositoryListener {
    @Override
    public void artifactDownloaded(RepositoryEvent event) {
      if (event.getException() == null) System.out.println("downloaded " + event.getArtifact());
    }
  }

  private static void copy(List<Dependency> dependencies, Path packages) throws IOException {
    Path jars = Files.createDirectories(packages.resolve("jars"));
    List<String> classPath = new ArrayList<>();
    for (Dependency dependency : dependencies) {
      Path file = dependency.getArtifact().getFile().toPath();
      if (!file.toString().endsWith(".jar")) continue;
      // Two groups may have an artifact of one name.
      Path target = jars.resolve(dependency.getArtifact().getGroupId() + "." + file.getFileName());
      Files.copy(file, target, StandardCopyOption.REPLACE_EXISTING);
      classPath.add(packages.relativize(target).toString());
    }
    Files.write(packages.resolve("class-path"), classPath);
  }
}

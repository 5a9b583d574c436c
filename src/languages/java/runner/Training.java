import java.io.IOException;
import java.util.*;
import java.util.function.Function;
import java.util.stream.Collectors;

/** What programs usually are made of. prepare.sh compiles it, and keeps the classes that the compiler needed for it. */
public class Training {
  interface Shape {
    double area();

    default String name() {
      return getClass().getSimpleName();
    }
  }

  record Circle(double radius) implements Shape {
    Circle {
      if (radius < 0) throw new IllegalArgumentException("negative: " + radius);
    }

    @Override
    public double area() {
      return Math.PI * radius * radius;
    }
  }

  enum Color {
    RED,
    GREEN {
      @Override
      int weight() {
        return 2;
      }
    };

    int weight() {
      return 1;
    }
  }

  static class Box<T extends Comparable<T>> {
    private final List<T> items = new ArrayList<>();

    @SafeVarargs
    final void add(T... more) {
      items.addAll(Arrays.asList(more));
    }

    T largest() {
      return items.stream().max(Comparator.naturalOrder()).orElseThrow();
    }
  }

  public static void main(String[] args) throws Exception {
    Map<String, Integer> counts = new TreeMap<>();
    for (String word : "one two two".split(" ")) counts.merge(word, 1, Integer::sum);
    String text = counts.entrySet().stream()
        .filter(entry -> entry.getValue() > 0)
        .map(entry -> entry.getKey() + "=" + entry.getValue())
        .collect(Collectors.joining(", ", "[", "]"));
    System.out.printf("%s %.2f%n", text, new Circle(2).area());

    var box = new Box<Integer>();
    box.add(3, 1, 2);
    int[] numbers = {1, 2, 3};
    long sum = 0;
    for (int i = 0; i < numbers.length; i++) sum += numbers[i] << 1;
    switch (Color.valueOf("RED")) {
      case RED:
        sum++;
        break;
      default:
        sum--;
    }
    String kind = switch (numbers.length) {
      case 1, 2 -> "few";
      default -> {
        yield sum > 10 ? "many" : "some";
      }
    };
    Function<Integer, Function<Integer, Integer>> add = a -> b -> a + b;
    Object any = kind;
    if (any instanceof String string && !string.isEmpty()) System.out.println(string + add.apply(1).apply(2));
    try (AutoCloseable closing = () -> System.out.println("closed")) {
      synchronized (box) {
        while (sum > 0) sum -= 5;
      }
      throw new IOException("""
          text
          block""");
    } catch (IOException | IllegalStateException error) {
      System.out.println(error.getMessage() + box.largest());
    } finally {
      do sum++; while (sum < 3);
    }
    Runnable anonymous = new Runnable() {
      @Override
      public void run() {
        System.out.println(Color.GREEN.weight() + (char) 65);
      }
    };
    Thread thread = new Thread(anonymous);
    thread.start();
    thread.join();
    List raw = new ArrayList();
    raw.add(new Integer(1));  // a warning with its line
  }
}

package a.b;
import a.c.D;
import static a.c.E.f;
import a.d.*;
/** doc */
@Ann
public class A<T> extends B implements C {
  private static final int X = 3;
  enum Kind { ONE, TWO }
  public A(int a) { this.a = a; }
  /** d */
  public <R> R m(int a, String b) throws E { return null; }
  interface In { void g(); }
}
record R(int a, int b) { R { } int s() { return 1; } }

package p
import "fmt"
import (
	"os"
	m "example.org/x/y"
)
// Comment
type T struct {
	A int // a
	B string
}
type I interface { Do(a int) error; Undo() }
type ( X int; Y string )
const (
	Aa = iota
	Bb
)
const Big = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
var V, W = 1, 2
func F(a int) (int, error) {
	return 1, nil
}
func (t *T) M(x string) { t.A = 1 }

// The etcd server, as its own main package has it: a module of its own so that go.sum fixes every version.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }

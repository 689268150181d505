package dtrain_test

// SPDX-License-Identifier: Apache-2.0

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"
)

// signatures has the exported functions, "AllReduce", and methods, "Table.Push".
func signatures(t *testing.T) map[string]string {
	t.Helper()
	files := token.NewFileSet()
	packages, err := parser.ParseDir(files, ".", func(info os.FileInfo) bool {
		return !strings.HasSuffix(info.Name(), "_test.go")
	}, 0)
	check(t, err)
	all := map[string]string{}
	for _, file := range packages["dtrain"].Files {
		for _, declaration := range file.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok || !function.Name.IsExported() {
				continue
			}
			name := function.Name.Name
			if function.Recv != nil {
				var receiver bytes.Buffer
				check(t, printer.Fprint(&receiver, files, function.Recv.List[0].Type))
				name = regexp.MustCompile(`\w+`).FindString(receiver.String()) + "." + name
			}
			var parameters []string
			for _, parameter := range function.Type.Params.List {
				var kind bytes.Buffer
				check(t, printer.Fprint(&kind, files, parameter.Type))
				for _, of := range parameter.Names {
					parameters = append(parameters, of.Name+" "+kind.String())
				}
			}
			all[name] = strings.Join(parameters, ", ")
		}
	}
	return all
}

// TestOneWay: StartX starts an operation X and PrepareX prepares it, with the same arguments except
// ctx. All collectives are functions; methods of a Table, whose type has the element type, are the
// exception.
func TestOneWay(t *testing.T) {
	all := signatures(t)
	beginning := regexp.MustCompile(`^(\w+\.)?(Start|Prepare)(\w+)$`)
	for name, parameters := range all {
		if parts := beginning.FindStringSubmatch(name); parts != nil && parts[3] != "Timeline" {
			blocking, there := all[parts[1]+parts[3]]
			blocking = strings.TrimPrefix(strings.TrimPrefix(blocking, "ctx context.Context"), ", ")
			if there && parts[3] == "CountRows" {
				parameters = "" // where the count is written
			}
			if !there || blocking != parameters {
				t.Errorf("%s(%s), and %s(ctx, %s)", name, parameters, parts[3], blocking)
			}
		}
		kind, _, method := strings.Cut(name, ".")
		waits := strings.HasPrefix(parameters, "ctx context.Context")
		if method && waits && kind != "Table" && kind != "Request" && kind != "Server" && kind != "Context" {
			t.Errorf("%s is a method that communicates", name)
		}
	}
	for _, name := range strings.Fields("AllReduce AllReduceTo Reduce ReduceScatter ReduceScatterV AllGather AllGatherV " +
		"Broadcast Gather GatherV Scatter ScatterV AllToAll AllToAllV Barrier Send Recv NeighborAverage " +
		"NeighborAllGather NeighborAllToAll") {
		for _, way := range []string{"", "Start", "Prepare"} {
			if _, there := all[way+name]; !there {
				t.Errorf("there is no %s", way+name)
			}
		}
	}
}

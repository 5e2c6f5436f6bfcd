// Google's Go client, unchanged, against the server that BIGTABLE_EMULATOR_HOST names. Prints 'PASS step' or 'FAIL step: why'.
//
//	BIGTABLE_EMULATOR_HOST=… scenario [BIG_ROW_MIB]
//	EDUBBA_TLS_HOST=… SSL_CERT_FILE=… EDUBBA_TOKEN=… scenario [BIG_ROW_MIB]
//
// The steps are those of node.mjs and python.py, and int64 counters beyond 2^53, which the Node client cannot hold.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/bigtable"
	"golang.org/x/oauth2"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

const (
	project, instance = "go-scenario", "scenario"
	bigCellMiB        = 5
	milli             = bigtable.Timestamp(1000)
)

var (
	ctx    = context.Background()
	admin  *bigtable.AdminClient
	client *bigtable.Client
	name   = fmt.Sprintf("go-%d", os.Getpid())
	table  *bigtable.Table
	failed bool
)

func step(what string, body func() error) {
	if err := body(); err != nil {
		failed = true
		fmt.Printf("FAIL %s: %s\n", what, strings.Join(strings.Fields(err.Error()), " "))
		return
	}
	fmt.Println("PASS", what)
}

func same[T any](got, want T) error {
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		return fmt.Errorf("got %.300s, not %.300s", g, w)
	}
	return nil
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// read gives each row as "key family:qualifier=value,…".
func read(rows bigtable.RowSet, options ...bigtable.ReadOption) (got []string, err error) {
	err = table.ReadRows(ctx, rows, func(row bigtable.Row) bool {
		var cells []string
		families := make([]string, 0, len(row))
		for family := range row {
			families = append(families, family)
		}
		slices.Sort(families)
		for _, family := range families {
			for _, item := range row[family] {
				cells = append(cells, item.Column+"="+string(item.Value)+strings.Join(item.Labels, ","))
			}
		}
		got = append(got, row.Key()+" "+strings.Join(cells, ","))
		return true
	}, options...)
	return
}

func expect(want []string, rows bigtable.RowSet, options ...bigtable.ReadOption) error {
	got, err := read(rows, options...)
	return first(err, same(got, want))
}

func keys(rows bigtable.RowSet, options ...bigtable.ReadOption) (got []string, err error) {
	err = table.ReadRows(ctx, rows, func(row bigtable.Row) bool { got = append(got, row.Key()); return true }, options...)
	return
}

func expectKeys(want []string, rows bigtable.RowSet, options ...bigtable.ReadOption) error {
	got, err := keys(rows, options...)
	return first(err, same(got, want))
}

func write(key string, cells ...string) error {
	m := bigtable.NewMutation()
	for _, cell := range cells {
		column, value, _ := strings.Cut(cell, "=")
		family, qualifier, _ := strings.Cut(column, ":")
		m.Set(family, qualifier, milli, []byte(value))
	}
	return table.Apply(ctx, key, m)
}

func families() (map[string]string, error) {
	info, err := admin.TableInfo(ctx, name)
	if err != nil {
		return nil, err
	}
	got := map[string]string{}
	for _, family := range info.FamilyInfos {
		got[family.Name] = family.GCPolicy
	}
	return got, nil
}

func tablesAndFamilies() {
	step("create a table with families and GC rules", func() error {
		err := admin.CreateTableFromConf(ctx, &bigtable.TableConf{TableID: name, SplitKeys: []string{"row050"},
			ColumnFamilies: map[string]bigtable.Family{"a": {GCPolicy: bigtable.MaxVersionsPolicy(2)}, "b": {}, "extra": {}}})
		if err != nil {
			return err
		}
		tables, err := admin.Tables(ctx)
		if err == nil && !slices.Contains(tables, name) {
			err = fmt.Errorf("%v lacks %s", tables, name)
		}
		got, err2 := families()
		return first(err, err2, same(len(got), 3))
	})
	step("a table that exists is refused", func() error {
		return same(status.Code(admin.CreateTable(ctx, name)), codes.AlreadyExists)
	})
	step("add, change and delete families", func() error {
		err := first(admin.CreateColumnFamily(ctx, name, "c"),
			admin.SetGCPolicy(ctx, name, "c", bigtable.UnionPolicy(bigtable.MaxAgePolicy(time.Hour), bigtable.MaxVersionsPolicy(3))),
			admin.SetGCPolicy(ctx, name, "b", bigtable.IntersectionPolicy(bigtable.MaxAgePolicy(time.Hour), bigtable.MaxVersionsPolicy(5))),
			admin.DeleteColumnFamily(ctx, name, "extra"))
		if err != nil {
			return err
		}
		got, err := families()
		return first(err, same(got, map[string]string{"a": "versions() > 2", "b": "(age() > 1h && versions() > 5)", "c": "(age() > 1h || versions() > 3)"}))
	})
}

func writes() {
	step("a single write reads back", func() error {
		return first(write("single", "a:q=first", "a:=empty qualifier"), expect([]string{"single a:=empty qualifier,a:q=first"}, bigtable.SingleRow("single")))
	})
	step("versions and GC by number", func() error {
		for n := 1; n <= 3; n++ {
			m := bigtable.NewMutation()
			m.Set("a", "q", milli*bigtable.Timestamp(n), []byte("v"+strconv.Itoa(n)))
			if err := table.Apply(ctx, "versions", m); err != nil {
				return err
			}
		}
		return expect([]string{"versions a:q=v3"}, bigtable.SingleRow("versions"), bigtable.RowFilter(bigtable.LatestNFilter(1)))
	})
	step("a batch of 100 rows", func() error {
		var rows []string
		var muts []*bigtable.Mutation
		for i := range 100 {
			m := bigtable.NewMutation()
			m.Set("a", "q", milli, []byte("value"+strconv.Itoa(i)))
			m.Set("b", "n", milli, []byte(strconv.Itoa(i)))
			rows, muts = append(rows, fmt.Sprintf("row%03d", i)), append(muts, m)
		}
		errs, err := table.ApplyBulk(ctx, rows, muts)
		got, err2 := keys(bigtable.PrefixRange("row"))
		return first(err, same(len(errs), 0), err2, same(len(got), 100))
	})
	step("a batch tells which entries failed", func() error {
		good, bad := bigtable.NewMutation(), bigtable.NewMutation()
		good.Set("a", "q", milli, []byte("x"))
		bad.Set("nofamily", "q", milli, []byte("x"))
		errs, err := table.ApplyBulk(ctx, []string{"good", "bad"}, []*bigtable.Mutation{good, bad})
		if err != nil || len(errs) != 2 || errs[0] != nil || errs[1] == nil {
			return fmt.Errorf("errors are %v, %v", err, errs)
		}
		return expectKeys([]string{"good"}, bigtable.RowList{"bad", "good"})
	})
	step("bytes of every value", func() error {
		all := make([]byte, 256)
		for i := range all {
			all[i] = byte(i)
		}
		m := bigtable.NewMutation()
		m.Set("a", string(all), milli, all)
		if err := table.Apply(ctx, "bytes\x00\xff", m); err != nil {
			return err
		}
		row, err := table.ReadRow(ctx, "bytes\x00\xff")
		if err != nil || len(row["a"]) != 1 || !bytes.Equal(row["a"][0].Value, all) || row["a"][0].Column != "a:"+string(all) {
			return fmt.Errorf("%v: %v", err, row)
		}
		return nil
	})
}

func reads() {
	step("ranges, prefixes, limits and reverse", func() error {
		ninety, err := keys(bigtable.PrefixRange("row09"))
		return first(err, same(len(ninety), 10),
			expectKeys([]string{"row010", "row011"}, bigtable.NewRange("row010", "row012")),
			expectKeys([]string{"row011", "row012"}, bigtable.NewOpenClosedRange("row010", "row012")),
			expectKeys([]string{"row000", "row001", "row002"}, bigtable.InfiniteRange("row"), bigtable.LimitRows(3)),
			expectKeys([]string{"row003", "row005"}, bigtable.RowList{"row005", "nothing", "row003"}),
			expectKeys([]string{"row012", "row011"}, bigtable.NewClosedRange("row000", "row012"), bigtable.ReverseScan(), bigtable.LimitRows(2)),
			expectKeys([]string{"row001", "row002", "row004"}, bigtable.RowRangeList{bigtable.NewRange("row001", "row003"), bigtable.NewRange("row004", "row005")}))
	})
	step("a missing row is not found", func() error {
		row, err := table.ReadRow(ctx, "nothing")
		return first(err, same(len(row), 0))
	})
	two := bigtable.RowList{"row001", "row002"}
	filtered := func(f bigtable.Filter, want ...string) error { return expect(want, two, bigtable.RowFilter(f)) }
	step("filters: family, column, value, row", func() error {
		return first(filtered(bigtable.FamilyFilter("a"), "row001 a:q=value1", "row002 a:q=value2"),
			filtered(bigtable.ColumnFilter("n"), "row001 b:n=1", "row002 b:n=2"),
			filtered(bigtable.ValueFilter("value[1]"), "row001 a:q=value1"),
			filtered(bigtable.RowKeyFilter(".*1"), "row001 a:q=value1,b:n=1"),
			filtered(bigtable.ColumnRangeFilter("a", "p", "r"), "row001 a:q=value1", "row002 a:q=value2"),
			filtered(bigtable.BlockAllFilter()))
	})
	step("filters: time and value ranges, cell limits", func() error {
		return first(filtered(bigtable.TimestampRangeFilterMicros(2*milli, 3*milli)),
			filtered(bigtable.TimestampRangeFilterMicros(milli, 2*milli), "row001 a:q=value1,b:n=1", "row002 a:q=value2,b:n=2"),
			filtered(bigtable.ValueRangeFilter([]byte("value1"), []byte("value2")), "row001 a:q=value1"),
			filtered(bigtable.CellsPerRowLimitFilter(1), "row001 a:q=value1", "row002 a:q=value2"),
			filtered(bigtable.CellsPerRowOffsetFilter(1), "row001 b:n=1", "row002 b:n=2"))
	})
	step("filters: chain, interleave, condition, strip, label", func() error {
		return first(filtered(bigtable.ChainFilters(bigtable.FamilyFilter("a"), bigtable.ValueFilter("value1")), "row001 a:q=value1"),
			filtered(bigtable.InterleaveFilters(bigtable.ValueFilter("value1"), bigtable.ValueFilter("2")), "row001 a:q=value1", "row002 b:n=2"),
			filtered(bigtable.ConditionFilter(bigtable.ValueFilter("value1"), bigtable.FamilyFilter("a"), bigtable.FamilyFilter("b")), "row001 a:q=value1", "row002 b:n=2"),
			filtered(bigtable.ChainFilters(bigtable.FamilyFilter("a"), bigtable.StripValueFilter()), "row001 a:q=", "row002 a:q="),
			filtered(bigtable.ChainFilters(bigtable.ValueFilter("value1"), bigtable.LabelFilter("mark")), "row001 a:q=value1mark"))
	})
}

func transactions() {
	step("increment and append", func() error {
		for _, by := range []int64{5, -2} {
			m := bigtable.NewReadModifyWrite()
			m.Increment("b", "count", by)
			if _, err := table.ApplyReadModifyWrite(ctx, "counter", m); err != nil {
				return err
			}
		}
		for _, word := range []string{"one", ",two"} {
			m := bigtable.NewReadModifyWrite()
			m.AppendValue("a", "log", []byte(word))
			if _, err := table.ApplyReadModifyWrite(ctx, "counter", m); err != nil {
				return err
			}
		}
		return expect([]string{"counter a:log=one,two,b:count=\x00\x00\x00\x00\x00\x00\x00\x03"}, bigtable.SingleRow("counter"), bigtable.RowFilter(bigtable.LatestNFilter(1)))
	})
	step("counters over all of int64", func() error {
		for i, n := range []int64{math.MaxInt64, math.MinInt64, 1<<53 + 1, 1<<53 - 1, -(1<<53 + 1)} {
			m := bigtable.NewReadModifyWrite()
			m.Increment("b", "n"+strconv.Itoa(i), n)
			row, err := table.ApplyReadModifyWrite(ctx, "int64", m)
			if err != nil {
				return err
			}
			if got := int64(binary.BigEndian.Uint64(row["b"][0].Value)); got != n {
				return fmt.Errorf("%d became %d", n, got)
			}
		}
		return nil
	})
	step("check and mutate", func() error {
		err := write("checked", "a:q=yes")
		for _, value := range []string{"yes", "nothing"} {
			matched, not := bigtable.NewMutation(), bigtable.NewMutation()
			matched.Set("b", "answer", milli, []byte("matched"))
			not.Set("b", "answer", milli, []byte("not"))
			var was bool
			err = first(err, table.Apply(ctx, "checked", bigtable.NewCondMutation(bigtable.ValueFilter(value), matched, not), bigtable.GetCondMutationResult(&was)))
			err = first(err, same(was, value == "yes"))
		}
		return first(err, expect([]string{"checked a:q=yes,b:answer=not"}, bigtable.SingleRow("checked")))
	})
	step("deletions: cells, column, family, row", func() error {
		all := bigtable.SingleRow("deleted")
		apply := func(m *bigtable.Mutation) error { return table.Apply(ctx, "deleted", m) }
		column, between, family, row := bigtable.NewMutation(), bigtable.NewMutation(), bigtable.NewMutation(), bigtable.NewMutation()
		column.DeleteCellsInColumn("a", "one")
		between.DeleteTimestampRange("a", "two", milli, 2*milli)
		family.DeleteCellsInFamily("b")
		row.DeleteRow()
		return first(write("deleted", "a:one=1", "a:two=2", "a:three=3", "b:x=4"), apply(column), expect([]string{"deleted a:three=3,a:two=2,b:x=4"}, all),
			apply(between), expect([]string{"deleted a:three=3,b:x=4"}, all), apply(family), expect([]string{"deleted a:three=3"}, all), apply(row), expect(nil, all),
			write("deleted", "a:one=back"), expect([]string{"deleted a:one=back"}, all))
	})
}

func wideRows() {
	step("rows of many cells, and one of 3 MiB", func() error {
		kib := bytes.Repeat([]byte("k"), 1024)
		var rows []string
		var muts []*bigtable.Mutation
		for i := range 200 {
			m := bigtable.NewMutation()
			for c := range 15 {
				m.Set("b", fmt.Sprintf("c%02d", c), milli, kib)
			}
			rows, muts = append(rows, fmt.Sprintf("wide%03d", i)), append(muts, m)
		}
		large := bigtable.NewMutation()
		for c := range 3 {
			large.Set("b", fmt.Sprintf("c%d", c), milli, bytes.Repeat(kib, 1024))
		}
		errs, err := table.ApplyBulk(ctx, rows, muts)
		if err = first(err, same(len(errs), 0), table.Apply(ctx, "wide200", large)); err != nil {
			return err
		}
		cells, size := 0, 0
		err = table.ReadRows(ctx, bigtable.PrefixRange("wide"), func(row bigtable.Row) bool {
			for _, item := range row["b"] {
				cells++
				size += len(item.Value)
			}
			return true
		})
		return first(err, same(cells, 200*15+3), same(size, 200*15*1024+3<<20))
	})
}

// withLargeMessages is a client that takes messages of the size it takes in production. The client demands that a message ends with a
// row, and through BIGTABLE_EMULATOR_HOST alone keeps gRPC's default of 4 MiB a message: it could read no larger row from any server.
func withLargeMessages() (*bigtable.Client, error) {
	const most = 1 << 28
	if over := overTls(); over != nil {
		return bigtable.NewClientWithConfig(ctx, project, instance, bigtable.ClientConfig{MetricsProvider: bigtable.NoopMetricsProvider{}}, over...)
	}
	conn, err := grpc.NewClient(os.Getenv("BIGTABLE_EMULATOR_HOST"), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(most), grpc.MaxCallSendMsgSize(most)))
	if err != nil {
		return nil, err
	}
	return bigtable.NewClientWithConfig(ctx, project, instance, bigtable.ClientConfig{MetricsProvider: bigtable.NoopMetricsProvider{}}, option.WithGRPCConn(conn))
}

func bigRow(mib int) {
	step(fmt.Sprintf("a row of %d MiB in cells of %d MiB", mib, bigCellMiB), func() error {
		var digests []string
		for i := range mib / bigCellMiB {
			value := make([]byte, bigCellMiB<<20)
			for at, x := 0, uint32(i+1); at < len(value); at += 4 {
				x = x*1664525 + 1013904223
				binary.LittleEndian.PutUint32(value[at:], x)
			}
			digests = append(digests, fmt.Sprintf("%x", sha256.Sum256(value)))
			m := bigtable.NewMutation()
			m.Set("b", fmt.Sprintf("cell%03d", i), milli, value)
			if err := table.Apply(ctx, "big", m); err != nil {
				return err
			}
		}
		large, err := withLargeMessages()
		if err != nil {
			return err
		}
		defer large.Close()
		row, err := large.Open(name).ReadRow(ctx, "big")
		if err != nil {
			return err
		}
		var got []string
		for _, item := range row["b"] {
			got = append(got, fmt.Sprintf("%x", sha256.Sum256(item.Value)))
		}
		return same(got, digests)
	})
}

func ends() {
	step("sample row keys", func() error {
		got, err := table.SampleRowKeys(ctx)
		return first(err, same(slices.IsSorted(got), true))
	})
	step("drop a prefix", func() error {
		err := admin.DropRowRange(ctx, name, "row09")
		got, err2 := keys(bigtable.PrefixRange("row"))
		return first(err, err2, same(len(got), 90))
	})
	step("delete all rows, then the table", func() error {
		err := admin.DropAllRows(ctx, name)
		got, err2 := keys(bigtable.InfiniteRange(""))
		err = first(err, err2, same(len(got), 0), admin.DeleteTable(ctx, name))
		tables, err2 := admin.Tables(ctx)
		return first(err, err2, same(slices.Contains(tables, name), false))
	})
}

// overTls has the settings for a server with TLS, as for the cloud's own: only the endpoint and the token differ. SSL_CERT_FILE names the authority.
func overTls() []option.ClientOption {
	address := os.Getenv("EDUBBA_TLS_HOST")
	if address == "" {
		return nil
	}
	token := oauth2.StaticTokenSource(&oauth2.Token{AccessToken: os.Getenv("EDUBBA_TOKEN")})
	return []option.ClientOption{option.WithEndpoint(address), option.WithTokenSource(token)}
}

func main() {
	bigRowMiB := 100
	if len(os.Args) > 1 {
		bigRowMiB, _ = strconv.Atoi(os.Args[1])
	}
	var err error
	if admin, err = bigtable.NewAdminClient(ctx, project, instance, overTls()...); err == nil {
		client, err = bigtable.NewClientWithConfig(ctx, project, instance, bigtable.ClientConfig{MetricsProvider: bigtable.NoopMetricsProvider{}}, overTls()...)
	}
	if err != nil {
		fmt.Println("FAIL connect:", err)
		os.Exit(1)
	}
	table = client.Open(name)
	tablesAndFamilies()
	writes()
	reads()
	transactions()
	wideRows()
	bigRow(bigRowMiB)
	ends()
	if failed {
		os.Exit(1)
	}
}

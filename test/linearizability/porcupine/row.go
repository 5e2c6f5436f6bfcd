// A row as row.ts specifies it.
package main

import (
	"strconv"
	"strings"
)

// The values of f:a, f:b, g:n and g:t, ';' between them, an absent one empty.
const emptyRow = ";;;"

var columns = []string{"f:a", "f:b", "g:n", "g:t"}

type change struct {
	Kind   string `json:"kind"`
	Column string `json:"column"`
	Family string `json:"family"`
	Value  string `json:"value"`
}

func rowEffect(state string, work work) (string, string) {
	switch work.Kind {
	case "read":
		return state, state
	case "mutate":
		return changed(state, work.Changes), ""
	case "mutateInvalidly":
		return state, "never answered"
	case "readModifyWrite":
		values := strings.Split(state, ";")
		count, _ := strconv.ParseInt(values[2], 10, 64)
		values[2] = strconv.FormatInt(count+work.Amount, 10)
		answer := values[2]
		if work.Suffix != nil {
			values[3] += *work.Suffix
			answer += ";" + values[3]
		}
		return strings.Join(values, ";"), answer
	case "checkAndMutate":
		matched := state != emptyRow
		if work.Expected != nil {
			matched = strings.SplitN(state, ";", 2)[0] == *work.Expected
		}
		if matched {
			return changed(state, work.WhenTrue), "true"
		}
		return changed(state, work.WhenFalse), "false"
	}
	panic("unknown work: " + work.Kind)
}

func changed(state string, changes []change) string {
	values := strings.Split(state, ";")
	for _, change := range changes {
		for i, column := range columns {
			switch change.Kind {
			case "set":
				if column == change.Column {
					values[i] = change.Value
				}
			case "deleteColumn":
				if column == change.Column {
					values[i] = ""
				}
			case "deleteFamily":
				if strings.HasPrefix(column, change.Family) {
					values[i] = ""
				}
			case "deleteRow":
				values[i] = ""
			}
		}
	}
	return strings.Join(values, ";")
}

// Porcupine's verdicts on histories: a line of JSON with a list of operations for each history on standard input, a line
// "true", "false" or "unknown" (it took too long) for each on standard output. The histories are those of
// random-history.ts, or with the argument "rows" those of rows (row.ts).
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/anishathalye/porcupine"
)

const patience = 10 * time.Second

type work struct {
	Kind     string  `json:"kind"`
	Value    string  `json:"value"`
	Expected *string `json:"expected"`
	// of rows
	Changes   []change `json:"changes"`
	Amount    int64    `json:"amount"`
	Suffix    *string  `json:"suffix"`
	WhenTrue  []change `json:"whenTrue"`
	WhenFalse []change `json:"whenFalse"`
}

type operation struct {
	Work       work   `json:"work"`
	BeganAt    int64  `json:"beganAt"`
	EndedAt    *int64 `json:"endedAt"` // null: it may take effect at any time
	IsAnswered bool   `json:"isAnswered"`
	Answer     string `json:"answer"`
}

// The output of an operation; of unknown outcome without an answer.
type output struct {
	isAnswered bool
	answer     string
}

func effect(state string, work work) (string, string) {
	switch work.Kind {
	case "read":
		return state, state
	case "write":
		return work.Value, ""
	case "append":
		return state + work.Value, state + work.Value
	case "compareAndSet":
		if state == *work.Expected {
			return work.Value, "true"
		}
		return state, "false"
	}
	panic("unknown work: " + work.Kind)
}

// An operation of unknown outcome has taken effect at the point at which it is tried, or never does.
func modelOf(initial string, effect func(state string, work work) (string, string)) porcupine.Model {
	nondeterministic := porcupine.NondeterministicModel{
		Init: func() []interface{} { return []interface{}{initial} },
		Step: func(state, input, out interface{}) []interface{} {
			next, answer := effect(state.(string), input.(work))
			known := out.(output)
			if !known.isAnswered {
				return []interface{}{state, next}
			}
			if answer != known.answer {
				return nil
			}
			return []interface{}{next}
		},
	}
	return nondeterministic.ToModel()
}

func main() {
	model := modelOf("", effect)
	if len(os.Args) > 1 && os.Args[1] == "rows" {
		model = modelOf(emptyRow, rowEffect)
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		var operations []operation
		if err := json.Unmarshal(lines.Bytes(), &operations); err != nil {
			panic(err)
		}
		history := make([]porcupine.Operation, 0, len(operations))
		for i, op := range operations {
			endedAt := int64(math.MaxInt64)
			if op.EndedAt != nil {
				endedAt = *op.EndedAt
			}
			history = append(history, porcupine.Operation{
				ClientId: i, Input: op.Work, Call: op.BeganAt, Output: output{op.IsAnswered, op.Answer}, Return: endedAt,
			})
		}
		switch porcupine.CheckOperationsTimeout(model, history, patience) {
		case porcupine.Unknown:
			fmt.Println("unknown")
		case porcupine.Ok:
			fmt.Println("true")
		default:
			fmt.Println("false")
		}
	}
}

// Porcupine's verdicts on the histories of random-history.ts: a line of JSON with a list of operations for each
// history on standard input, a line "true" or "false" for each on standard output.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"

	"github.com/anishathalye/porcupine"
)

type work struct {
	Kind     string `json:"kind"`
	Value    string `json:"value"`
	Expected string `json:"expected"`
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
		if state == work.Expected {
			return work.Value, "true"
		}
		return state, "false"
	}
	panic("unknown work: " + work.Kind)
}

var register = porcupine.NondeterministicModel{
	Init: func() []interface{} { return []interface{}{""} },
	// an operation of unknown outcome has taken effect at this point, or never does
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

func main() {
	model := register.ToModel()
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
		fmt.Println(strconv.FormatBool(porcupine.CheckOperations(model, history)))
	}
}

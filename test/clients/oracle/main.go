// Answers what Kubernetes' own Go libraries make of a text. One question in JSON per line of the input, one answer per line of
// the output.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	_ "time/tzdata"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	netutils "k8s.io/utils/net"
	"sigs.k8s.io/yaml"
)

type question struct {
	Ask  string   `json:"ask"`
	Args []string `json:"args"`
}

var answers = map[string]func(args []string) any{
	"quantity":   func(args []string) any { return quantity(args[0]) },
	"quantities": func(args []string) any { return quantities(args[0], args[1]) },
	"format":     func(args []string) any { return strfmt.Default.Validates(args[0], args[1]) },
	"yaml":       func(args []string) any { return fromYAML(args[0]) },
	"cron": func(args []string) any {
		return message(func() error { _, err := cron.ParseStandard(args[0]); return err })
	},
	"timeZone": func(args []string) any {
		return message(func() error { _, err := time.LoadLocation(args[0]); return err })
	},
	"sloppyIP": func(args []string) any { return netutils.ParseIPSloppy(args[0]) != nil },
	"sloppyCIDR": func(args []string) any {
		return message(func() error { _, _, err := netutils.ParseCIDRSloppy(args[0]); return err })
	},
}

func message(check func() error) (answer any) {
	// Some libraries crash.
	defer func() {
		if recover() != nil {
			answer = "panic"
		}
	}()
	if err := check(); err != nil {
		return err.Error()
	}
	return nil
}

func parse(text string) (resource.Quantity, error) {
	return resource.ParseQuantity(text)
}

func quantity(text string) any {
	q, err := parse(text)
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	// AsInt64 before all that could change the form of the quantity.
	integer, isInteger := q.AsInt64()
	float := q.AsApproximateFloat64()
	printed := q.String()
	canonical := q.DeepCopy()
	number, suffix := canonical.CanonicalizeBytes(make([]byte, 0, 18))
	milli := q.DeepCopy()
	milli.RoundUp(resource.Milli)
	answer := map[string]any{
		"printed": printed, "canonical": string(number) + string(suffix), "sign": q.Sign(), "format": string(q.Format),
		"milli": milli.String(), "float": fmt.Sprintf("%b", float),
	}
	if isInteger {
		answer["integer"] = fmt.Sprint(integer)
	}
	return answer
}

func quantities(a, b string) any {
	x, err := parse(a)
	if err != nil {
		return nil
	}
	y, err := parse(b)
	if err != nil {
		return nil
	}
	sum, difference := x.DeepCopy(), x.DeepCopy()
	sum.Add(y.DeepCopy())
	difference.Sub(y.DeepCopy())
	integerOf := func(q resource.Quantity) any {
		if integer, ok := q.AsInt64(); ok {
			return fmt.Sprint(integer)
		}
		return nil
	}
	return map[string]any{
		"sum": sum.String(), "sumInteger": integerOf(sum), "difference": difference.String(), "differenceInteger": integerOf(difference),
		"compared": x.Cmp(y),
	}
}

func fromYAML(text string) any {
	converted, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	return map[string]any{"json": string(converted)}
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<26)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for in.Scan() {
		if strings.TrimSpace(in.Text()) == "" {
			continue
		}
		var q question
		if err := json.Unmarshal(in.Bytes(), &q); err != nil {
			panic(err)
		}
		answer, known := answers[q.Ask]
		if !known {
			panic("unknown question " + q.Ask)
		}
		if err := encoder.Encode(answer(q.Args)); err != nil {
			panic(err)
		}
	}
	if err := in.Err(); err != nil {
		panic(err)
	}
}

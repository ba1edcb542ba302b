// Compiles and evaluates CEL expressions with the libraries of kube-apiserver, as it does for the validation rules of
// CustomResourceDefinitions. Reads one JSON request per line and answers each with one line.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/apiserver/pkg/cel/mutation"
)

type request struct {
	Schema     json.RawMessage            `json:"schema"`
	Self       json.RawMessage            `json:"self"`
	OldSelf    json.RawMessage            `json:"oldSelf"`
	Root       bool                       `json:"root"`
	Expression string                     `json:"expression"`
	Minor      uint                       `json:"minor"`
	Variables  map[string]json.RawMessage `json:"variables"`
	Limit      uint64                     `json:"limit"`
	Mutation   bool                       `json:"mutation"`
}

type answer struct {
	CompileError string `json:"compileError,omitempty"`
	ProgramError string `json:"programError,omitempty"`
	Error        string `json:"error,omitempty"`
	Type         string `json:"type,omitempty"`
	Result       string `json:"result,omitempty"`
	Cost         string `json:"cost,omitempty"`
	EstimateMin  string `json:"estimateMin,omitempty"`
	EstimateMax  string `json:"estimateMax,omitempty"`
	Failure      string `json:"failure,omitempty"`
}

type sizes struct{ root *apiservercel.DeclType }

func (s *sizes) EstimateSize(element checker.AstNode) *checker.SizeEstimate {
	if s.root == nil || len(element.Path()) == 0 {
		return nil
	}
	node := s.root
	for _, name := range element.Path()[1:] {
		switch name {
		case "@items", "@values":
			node = node.ElemType
		case "@keys":
			node = node.KeyType
		default:
			field, ok := node.Fields[name]
			if !ok {
				return nil
			}
			node = field.Type
		}
		if node == nil {
			return nil
		}
	}
	return &checker.SizeEstimate{Min: 0, Max: uint64(node.MaxElements)}
}

func (s *sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

func structural(text json.RawMessage) (*schema.Structural, error) {
	var props apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal(text, &props); err != nil {
		return nil, err
	}
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&props, &internal, nil); err != nil {
		return nil, err
	}
	return schema.NewStructural(&internal)
}

func value(text json.RawMessage) (any, error) {
	var out any
	err := utiljson.Unmarshal(text, &out)
	return out, err
}

func run(r request) (out answer) {
	defer func() {
		if p := recover(); p != nil {
			out = answer{Failure: fmt.Sprint(p)}
		}
	}()
	minor := r.Minor
	if minor == 0 {
		minor = 34
	}
	base := environment.MustBaseEnvSet(version.MajorMinor(1, minor), true)
	options := environment.VersionedOptions{IntroducedVersion: version.MajorMinor(1, 0)}
	input := map[string]any{}
	var root *apiservercel.DeclType
	if len(r.Schema) > 0 {
		s, err := structural(r.Schema)
		if err != nil {
			return answer{Failure: err.Error()}
		}
		decl := model.SchemaDeclType(s, r.Root)
		if decl == nil {
			return answer{Failure: "no declared type"}
		}
		root = decl.MaybeAssignTypeName("selfType")
		options.DeclTypes = []*apiservercel.DeclType{root}
		options.EnvOptions = append(options.EnvOptions, cel.Variable("self", root.CelType()))
		s = model.WithTypeAndObjectMeta(s)
		if len(r.Self) > 0 {
			v, err := value(r.Self)
			if err != nil {
				return answer{Failure: err.Error()}
			}
			input["self"] = schemacel.UnstructuredToVal(v, s)
		}
		if len(r.OldSelf) > 0 {
			v, err := value(r.OldSelf)
			if err != nil {
				return answer{Failure: err.Error()}
			}
			options.EnvOptions = append(options.EnvOptions, cel.Variable("oldSelf", root.CelType()))
			input["oldSelf"] = schemacel.UnstructuredToVal(v, s)
		}
	}
	for name, text := range r.Variables {
		v, err := value(text)
		if err != nil {
			return answer{Failure: err.Error()}
		}
		options.EnvOptions = append(options.EnvOptions, cel.Variable(name, cel.DynType))
		input[name] = v
	}
	if r.Mutation {
		options.EnvOptions = append(options.EnvOptions,
			common.ResolverEnvOption(&mutation.DynamicTypeResolver{}), cel.Lib(mutationLibrary{}))
	}
	set, err := base.Extend(options)
	if err != nil {
		return answer{Failure: err.Error()}
	}
	env := set.NewExpressionsEnv()
	ast, issues := env.Compile(r.Expression)
	if issues != nil {
		return answer{CompileError: issues.String()}
	}
	out.Type = ast.OutputType().String()
	estimator := &library.CostEstimator{SizeEstimator: &sizes{root}}
	estimate, err := env.EstimateCost(ast, estimator)
	if err != nil {
		return answer{Failure: err.Error()}
	}
	out.EstimateMin = strconv.FormatUint(estimate.Min, 10)
	out.EstimateMax = strconv.FormatUint(estimate.Max, 10)
	limit := r.Limit
	if limit == 0 {
		limit = celconfig.PerCallLimit
	}
	program, err := env.Program(ast, cel.CostLimit(limit), cel.CostTracking(estimator),
		cel.InterruptCheckFrequency(celconfig.CheckFrequency))
	if err != nil {
		out.ProgramError = err.Error()
		return out
	}
	result, details, err := program.ContextEval(context.Background(), input)
	if details != nil && details.ActualCost() != nil {
		out.Cost = strconv.FormatUint(*details.ActualCost(), 10)
	}
	if err != nil {
		out.Error = err.Error()
		return out
	}
	out.Result = show(result)
	return out
}

// mutationLibrary is what MutatingAdmissionPolicy adds to the environment.
type mutationLibrary struct{}

func (mutationLibrary) CompileOptions() []cel.EnvOption {
	return []cel.EnvOption{library.JSONPatch()}
}
func (mutationLibrary) ProgramOptions() []cel.ProgramOption { return nil }

// show writes a value in one canonical form, with map entries in the order of their text.
func show(v ref.Val) string {
	switch t := v.(type) {
	case types.Bool:
		return strconv.FormatBool(bool(t))
	case types.Int:
		return strconv.FormatInt(int64(t), 10)
	case types.Uint:
		return strconv.FormatUint(uint64(t), 10) + "u"
	case types.Double:
		return "double(" + strconv.FormatFloat(float64(t), 'g', -1, 64) + ")"
	case types.String:
		text, _ := json.Marshal(string(t))
		return string(text)
	case types.Bytes:
		return fmt.Sprintf("b%x", []byte(t))
	case types.Null:
		return "null"
	case types.Timestamp:
		return "timestamp(" + t.Time.UTC().Format("2006-01-02T15:04:05.999999999Z07:00") + ")"
	case types.Duration:
		return "duration(" + strconv.FormatInt(int64(t.Duration), 10) + ")"
	case *types.Optional:
		if !t.HasValue() {
			return "optional.none()"
		}
		return "optional.of(" + show(t.GetValue()) + ")"
	case *types.Type:
		return "type(" + t.TypeName() + ")"
	case *mutation.JSONPatchVal:
		out := fmt.Sprintf("JSONPatch(%q %q %q", t.Op, t.Path, t.From)
		if t.Val != nil {
			out += " " + show(t.Val)
		}
		return out + ")"
	case traits.Lister:
		parts := []string{}
		for it := t.Iterator(); it.HasNext() == types.True; {
			parts = append(parts, show(it.Next()))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case traits.Mapper:
		parts := []string{}
		for it := t.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			entry, _ := t.Find(key)
			parts = append(parts, show(key)+":"+show(entry))
		}
		sort.Strings(parts)
		return "{" + strings.Join(parts, ",") + "}"
	}
	if strings.HasPrefix(v.Type().TypeName(), "kubernetes.authorization") {
		return v.Type().TypeName()
	}
	switch t := v.Value().(type) {
	case fmt.Stringer:
		return v.Type().TypeName() + "(" + t.String() + ")"
	case map[string]any:
		text, _ := json.Marshal(t)
		return v.Type().TypeName() + string(text)
	}
	return v.Type().TypeName()
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<20), 1<<26)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for in.Scan() {
		var r request
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			_ = encoder.Encode(answer{Failure: err.Error()})
			continue
		}
		_ = encoder.Encode(run(r))
	}
	if err := in.Err(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

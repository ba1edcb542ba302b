package merge

import (
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// TestRandomRecorded writes objects of random types by several managers, from the seed in KCP_SEED on.
func TestRandomRecorded(t *testing.T) {
	seed, rounds := number("KCP_SEED", 1), number("KCP_ROUNDS", 100)
	for i := int64(0); i < rounds; i++ {
		(&world{Rand: rand.New(rand.NewSource(seed + i))}).run(t)
	}
}

func number(name string, otherwise int64) int64 {
	if n, err := strconv.ParseInt(os.Getenv(name), 10, 64); err == nil {
		return n
	}
	return otherwise
}

type world struct {
	*rand.Rand
	schema *schema.Schema
}

// Convert knows v1 and v2, which are alike; v0 is served no more.
func (w *world) Convert(object *typed.TypedValue, version fieldpath.APIVersion) (*typed.TypedValue, error) {
	if version == "v0" {
		return nil, fmt.Errorf("missing")
	}
	return object, nil
}

func (w *world) IsMissingVersionError(err error) bool { return err != nil }

var names = []string{"a", "b", "c", "d"}

func (w *world) run(t *testing.T) {
	w.schema = &schema.Schema{Types: typed.DeducedParseableType.Schema.Types}
	root := w.structType(3)
	w.schema.Types = append([]schema.TypeDef{{Name: "root", Atom: schema.Atom{Map: root}}}, w.schema.Types...)
	name := "root"
	parse := typed.ParseableType{Schema: w.schema, TypeRef: schema.TypeRef{NamedType: &name}}
	live, err := parse.FromUnstructured(nil)
	if err != nil {
		t.Fatal(err)
	}
	updater := &Updater{Converter: w}
	if w.Intn(3) == 0 {
		updater.IgnoreFilter = map[fieldpath.APIVersion]fieldpath.Filter{
			"v1": fieldpath.NewExcludeSetFilter(fieldpath.NewSet(fieldpath.MakePathOrDie("a"), fieldpath.MakePathOrDie("b", "a"))),
		}
	}
	managers := fieldpath.ManagedFields{}
	for step := 0; step < 12; step++ {
		manager := []string{"one", "two", "three"}[w.Intn(3)]
		version := fieldpath.APIVersion([]string{"v1", "v1", "v2"}[w.Intn(3)])
		applies := w.Intn(3) > 0
		var options []typed.ValidationOptions
		if !applies {
			options = append(options, typed.AllowDuplicates)
			manager += "-update"
		}
		next, err := parse.FromUnstructured(w.mapValue(root, applies), options...)
		if err != nil {
			continue
		}
		result, after := live, managers
		if applies {
			result, after, err = updater.Apply(live, next, version, managers.Copy(), manager, w.Intn(2) == 0)
		} else {
			result, after, err = updater.Update(live, next, version, managers.Copy(), manager)
		}
		if err != nil {
			continue
		}
		if result != nil {
			live = result
		}
		managers = after
		if w.Intn(10) == 0 {
			for name, owned := range managers {
				managers[name] = fieldpath.NewVersionedSet(owned.Set(), "v0", owned.Applied())
				break
			}
		}
	}
}

func (w *world) relationship() schema.ElementRelationship {
	return []schema.ElementRelationship{schema.Separable, "", schema.Separable, schema.Atomic}[w.Intn(4)]
}

func (w *world) structType(depth int) *schema.Map {
	result := &schema.Map{ElementRelationship: schema.Separable}
	if depth < 3 {
		result.ElementRelationship = w.relationship()
	}
	for _, name := range names {
		field := schema.StructField{Name: name, Type: w.typeRef(depth - 1)}
		result.Fields = append(result.Fields, field)
	}
	return result
}

func (w *world) typeRef(depth int) schema.TypeRef {
	named := func(name string) schema.TypeRef { return schema.TypeRef{NamedType: &name} }
	kind := w.Intn(9)
	if depth <= 0 && kind < 5 {
		kind += 4
	}
	switch kind {
	case 0, 1:
		return schema.TypeRef{Inlined: schema.Atom{Map: w.structType(depth)}}
	case 2:
		return schema.TypeRef{Inlined: schema.Atom{List: w.keyedList(depth)}}
	case 3:
		return schema.TypeRef{Inlined: schema.Atom{Map: &schema.Map{
			ElementType: w.typeRef(depth - 1), ElementRelationship: w.relationship(),
		}}}
	case 4:
		return schema.TypeRef{Inlined: schema.Atom{List: &schema.List{
			ElementType: w.typeRef(depth - 1), ElementRelationship: schema.Atomic,
		}}}
	case 5:
		return schema.TypeRef{Inlined: schema.Atom{List: &schema.List{
			ElementType: scalarType("untyped"), ElementRelationship: schema.Associative,
		}}}
	case 6:
		return named([]string{"__untyped_deduced_", "__untyped_atomic_"}[w.Intn(2)])
	default:
		return scalarType([]schema.Scalar{schema.Numeric, schema.String, schema.Boolean, schema.Untyped}[w.Intn(4)])
	}
}

func scalarType(s schema.Scalar) schema.TypeRef {
	return schema.TypeRef{Inlined: schema.Atom{Scalar: &s}}
}

// keyedList is of items that are told apart by `a` and `b`; `b` may have a default.
func (w *world) keyedList(depth int) *schema.List {
	item := w.structType(depth)
	item.ElementRelationship = schema.Separable
	item.Fields[0].Type = scalarType(schema.String)
	item.Fields[1].Type = scalarType(schema.Untyped)
	if w.Intn(2) == 0 {
		item.Fields[1].Default = []any{"x", float64(7), true}[w.Intn(3)]
	}
	return &schema.List{
		ElementType: schema.TypeRef{Inlined: schema.Atom{Map: item}}, ElementRelationship: schema.Associative,
		Keys: [][]string{{"a"}, {"b"}, {"b", "a"}}[w.Intn(3)],
	}
}

func (w *world) value(t schema.TypeRef, unique bool) any {
	if w.Intn(25) == 0 {
		return nil
	}
	atom, _ := w.schema.Resolve(t)
	kind := -1
	if atom.Map != nil && atom.List != nil {
		// Mostly scalars, so that values end.
		kind = w.Intn(6)
	}
	switch {
	case atom.Map != nil && kind <= 0:
		return w.mapValue(atom.Map, unique)
	case atom.List != nil && (kind < 0 || kind == 1):
		return w.listValue(atom.List, unique)
	default:
		return w.scalarValue(*atom.Scalar)
	}
}

func (w *world) mapValue(t *schema.Map, unique bool) map[string]any {
	result := map[string]any{}
	for _, name := range names {
		if w.Intn(2) == 0 {
			continue
		}
		fieldType := t.ElementType
		if field, ok := t.FindField(name); ok {
			fieldType = field.Type
		}
		if w.Intn(60) == 0 {
			fieldType = scalarType(schema.Untyped)
		}
		result[name] = w.value(fieldType, unique)
	}
	if w.Intn(80) == 0 {
		result["undeclared"] = "x"
	}
	return result
}

func (w *world) listValue(t *schema.List, unique bool) []any {
	result := []any{}
	seen := map[string]bool{}
	for i := w.Intn(4); i > 0; i-- {
		item := w.value(t.ElementType, unique)
		key := fmt.Sprint(item)
		if fields, ok := item.(map[string]any); ok {
			key = fmt.Sprint(fields["a"], fields["b"])
		}
		if unique && t.ElementRelationship == schema.Associative && seen[key] && w.Intn(10) > 0 {
			continue
		}
		seen[key] = true
		result = append(result, item)
	}
	return result
}

func (w *world) scalarValue(s schema.Scalar) any {
	texts := []any{"x", "y", "z<&>", "\u00e9\u2028\"\\", ""}
	numbers := []any{float64(1), float64(2), 2.5, float64(1234567), int64(7)}
	switch s {
	case schema.Numeric:
		return numbers[w.Intn(len(numbers))]
	case schema.String:
		return texts[w.Intn(len(texts))]
	case schema.Boolean:
		return w.Intn(2) == 0
	}
	return append(append(texts, numbers...), true, false)[w.Intn(12)]
}


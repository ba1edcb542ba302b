// Makes nodes with fresh ids and remembers where in the text each one stands.
import type { Value } from '#apimachinery/cel/values/value.ts'
import type { Expression, FieldEntry, MapEntry } from './expression.ts'

/** The accumulator of comprehensions: no name that an expression can write. */
export const accumulatorName = '@result'
const legacyAccumulatorName = '__result__'

/** The loop variable of comprehensions that only bind a name. */
export const unusedVariable = '#unused'

/** True for names that would hide the accumulator. */
export const hidesAccumulator = (name: string): boolean => name === accumulatorName || name === legacyAccumulatorName

// More than any text within the parser's limits needs: macros that copy their target can double an expression again and
// again.
const maxNodes = 200_000

/** Thrown where macros make an expression too large. */
export class TooManyNodes extends Error {}

interface Loop {
  readonly range: Expression
  readonly iterVar: string
  readonly iterVar2?: string
  readonly accuVar?: string
  readonly accuInit: Expression
  readonly condition: Expression
  readonly step: Expression
  readonly result: Expression
}

export class NodeFactory {
  readonly places: (number | undefined)[] = [undefined]

  /** A fresh id that stands at an index of the text. */
  id(place: number | undefined): number {
    if (this.places.length >= maxNodes) throw new TooManyNodes()
    return this.places.push(place) - 1
  }

  literal(place: number | undefined, value: Value): Expression {
    return { kind: 'literal', id: this.id(place), value }
  }

  identifier(place: number | undefined, name: string): Expression {
    return { kind: 'identifier', id: this.id(place), name }
  }

  accumulator(place: number | undefined): Expression {
    return this.identifier(place, accumulatorName)
  }

  select(place: number | undefined, operand: Expression, field: string, { testOnly = false } = {}): Expression {
    return { kind: 'select', id: this.id(place), operand, field, testOnly }
  }

  call(place: number | undefined, name: string, ...args: Expression[]): Expression {
    return { kind: 'call', id: this.id(place), name, args }
  }

  memberCall(place: number | undefined, target: Expression, name: string, ...args: Expression[]): Expression {
    return { kind: 'call', id: this.id(place), name, target, args }
  }

  list(place: number | undefined, elements: Expression[], optional: ReadonlySet<number> = new Set()): Expression {
    return { kind: 'list', id: this.id(place), elements, optional }
  }

  map(place: number | undefined, entries: MapEntry[]): Expression {
    return { kind: 'map', id: this.id(place), entries }
  }

  struct(place: number | undefined, typeName: string, fields: FieldEntry[]): Expression {
    return { kind: 'struct', id: this.id(place), typeName, fields }
  }

  loop(place: number | undefined, { iterVar2 = '', accuVar = accumulatorName, ...rest }: Loop): Expression {
    return { kind: 'comprehension', id: this.id(place), iterVar2, accuVar, ...rest }
  }

  /** Binds a name to a value inside `result`: a comprehension over nothing. */
  bind(place: number | undefined, name: string, value: Expression, result: Expression): Expression {
    return this.loop(place, {
      range: this.list(place, []),
      iterVar: unusedVariable,
      accuVar: name,
      accuInit: value,
      condition: this.literal(place, false),
      step: this.identifier(place, name),
      result,
    })
  }

  /** The same expression with ids of its own. */
  copy(node: Expression): Expression {
    const id = this.id(this.places[node.id])
    switch (node.kind) {
      case 'literal':
      case 'identifier':
        return { ...node, id }
      case 'select':
        return { ...node, id, operand: this.copy(node.operand) }
      case 'call': {
        const args = node.args.map((arg) => this.copy(arg))
        return node.target === undefined ? { ...node, id, args } : { ...node, id, args, target: this.copy(node.target) }
      }
      case 'list':
        return { ...node, id, elements: node.elements.map((element) => this.copy(element)) }
      case 'map':
        return {
          ...node,
          id,
          entries: node.entries.map((entry) => ({
            ...entry,
            id: this.id(this.places[entry.id]),
            key: this.copy(entry.key),
            value: this.copy(entry.value),
          })),
        }
      case 'struct':
        return {
          ...node,
          id,
          fields: node.fields.map((field) => ({
            ...field,
            id: this.id(this.places[field.id]),
            value: this.copy(field.value),
          })),
        }
      case 'comprehension':
        return {
          ...node,
          id,
          range: this.copy(node.range),
          accuInit: this.copy(node.accuInit),
          condition: this.copy(node.condition),
          step: this.copy(node.step),
          result: this.copy(node.result),
        }
    }
  }
}

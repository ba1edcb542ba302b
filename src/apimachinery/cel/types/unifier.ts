// Assignability of types, and the bindings of type parameters while an expression is checked.
import { type CelType, dynType, isDyn, isSameType, paramOf } from './cel-type.ts'

const wild = (type: CelType): boolean => isDyn(type) || type.kind === 'error'

/** Thrown where types grow so large that checking them would hold up everybody. */
export class TypesTooLarge extends Error {}

const maxSteps = 500_000

export class Unifier {
  #steps = 0
  readonly #bound = new Map<string, CelType>()
  // What to put back when an attempt fails.
  readonly #undo: (readonly [name: string, before: CelType | undefined])[] = []

  /** True if `from` may be used where `to` is asked for. Type parameters stay bound only then. */
  assign(from: CelType, to: CelType): boolean {
    return this.#attempt(() => this.#assignable(from, to))
  }

  /** As assign, of lists of types of the same length. */
  assignAll(from: readonly CelType[], to: readonly CelType[]): boolean {
    return this.#attempt(() => this.#allAssignable(from, to))
  }

  /** The type with its bound parameters filled in; the others as they are, or dyn. */
  resolve(type: CelType, { unboundIsDyn = false } = {}): CelType {
    this.#step()
    if (type.kind === 'param') {
      const bound = this.#bound.get(type.name)
      if (bound !== undefined) return this.resolve(bound, { unboundIsDyn })
      return unboundIsDyn ? dynType : type
    }
    if (type.params.length === 0) return type
    return { ...type, params: type.params.map((param) => this.resolve(param, { unboundIsDyn })) }
  }

  #attempt(step: () => boolean): boolean {
    this.#undo.length = 0
    if (step()) return true
    for (const [name, before] of this.#undo.reverse()) {
      if (before === undefined) this.#bound.delete(name)
      else this.#bound.set(name, before)
    }
    return false
  }

  #step(): void {
    this.#steps += 1
    if (this.#steps > maxSteps) throw new TypesTooLarge()
  }

  #bind(name: string, type: CelType): void {
    this.#undo.push([name, this.#bound.get(name)])
    this.#bound.set(name, type)
  }

  #assignable(a: CelType, b: CelType): boolean {
    this.#step()
    if (b.kind === 'param') {
      const answer = this.#substitute(a, b)
      if (answer !== undefined) return answer
    }
    if (a.kind === 'param') return this.#substitute(b, a) ?? false
    if (wild(a) || wild(b)) return true
    if (a.kind === 'null') return nullable(b)
    if (b.kind === 'null') return nullable(a)
    switch (a.kind) {
      case 'type':
        return b.kind === 'type'
      case 'opaque':
      case 'list':
      case 'map':
        return a.kind === b.kind && a.name === b.name && this.#allAssignable(a.params, b.params)
      default:
        return a.kind === b.kind && a.name === b.name
    }
  }

  #allAssignable(a: readonly CelType[], b: readonly CelType[]): boolean {
    return a.length === b.length && a.every((type, i) => this.#assignable(type, b[i] ?? dynType))
  }

  // Whether a type may stand for a parameter; undefined where the parameter is free but occurs in the type.
  #substitute(type: CelType, param: CelType): boolean | undefined {
    if (isSameType(type, param)) return true
    const bound = this.#bound.get(param.name)
    if (bound !== undefined) {
      if (isSameType(type, bound)) return true
      if (!this.#assignable(type, bound)) return false
      const general = mostGeneral(type, bound)
      if (!this.#occurs(param, general)) this.#bind(param.name, general)
      return true
    }
    if (this.#occurs(param, type)) return undefined
    this.#bind(param.name, type)
    return true
  }

  #occurs(param: CelType, within: CelType): boolean {
    this.#step()
    if (isSameType(param, within)) return true
    if (within.kind === 'param') {
      const bound = this.#bound.get(within.name)
      return bound !== undefined && this.#occurs(param, bound)
    }
    return within.params.some((part) => this.#occurs(param, part))
  }
}

// As cel-go's first type checker had it.
function nullable({ kind }: CelType): boolean {
  return ['null', 'opaque', 'struct', 'any', 'duration', 'timestamp'].includes(kind)
}

/** The one of two types that fit each other which says less. */
export function mostGeneral(a: CelType, b: CelType): CelType {
  return saysLess(a, b) ? a : b
}

function saysLess(a: CelType, b: CelType): boolean {
  if (isDyn(a) || a.kind === 'param') return true
  if (isDyn(b) || b.kind === 'param' || a.kind !== b.kind) return false
  switch (a.kind) {
    case 'opaque':
      if (a.name !== b.name || a.params.length !== b.params.length) return false
      return a.params.every((param, i) => saysLess(param, paramOf(b, i)))
    case 'list':
    case 'map':
      return a.params.every((param, i) => saysLess(param, paramOf(b, i)))
    case 'type':
      return true
    default:
      return isSameType(a, b)
  }
}

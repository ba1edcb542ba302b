// The type checker: resolves names, picks overloads, finds the type of every node.
import {
  type Call,
  type Comprehension,
  type Expression,
  type ListLiteral,
  type MapLiteral,
  type ParsedExpression,
  qualifiedName,
  type Select,
  type StructLiteral,
} from '#apimachinery/cel/syntax/expression.ts'
import { noLocation, SourceErrors } from '#apimachinery/cel/syntax/source.ts'
import {
  boolType,
  bytesType,
  type CelType,
  doubleType,
  dynType,
  errorType,
  intType,
  isDyn,
  isOptional,
  isSameType,
  listOf,
  mapOf,
  nullType,
  optionalOf,
  paramOf,
  printType,
  stringType,
  typeOf,
  typeParam,
  uintType,
} from '#apimachinery/cel/types/cel-type.ts'
import { mostGeneral, TypesTooLarge, Unifier } from '#apimachinery/cel/types/unifier.ts'
import { CelDouble, CelUint, isInt, type Value } from '#apimachinery/cel/values/value.ts'
import { CheckedExpression } from '#apimachinery/cel/declarations/checked-expression.ts'
import type { Declarations, FunctionDeclaration, Overload } from '#apimachinery/cel/declarations/declarations.ts'

type Meaning = { readonly kind: 'variable' | 'typeName'; readonly name: string; readonly type: CelType }

/** Checks an expression against what is declared. The errors, where there are any. */
export function check(parsed: ParsedExpression, declarations: Declarations): CheckedExpression | SourceErrors {
  try {
    return new Checker(parsed, declarations).run()
  } catch (error) {
    if (!(error instanceof TypesTooLarge)) throw error
    const errors = new SourceErrors(parsed.text)
    errors.add(noLocation, 'expression is too complex: its types are too large')
    return errors
  }
}

class Checker {
  readonly #parsed: ParsedExpression
  readonly #declared: Declarations
  readonly #errors: SourceErrors
  readonly #out: CheckedExpression
  readonly #unifier = new Unifier()
  readonly #scopes: Map<string, CelType>[] = []
  #freeParams = 0

  constructor(parsed: ParsedExpression, declared: Declarations) {
    this.#parsed = parsed
    this.#declared = declared
    this.#errors = new SourceErrors(parsed.text)
    this.#out = new CheckedExpression(parsed.text, parsed.root)
  }

  run(): CheckedExpression | SourceErrors {
    this.#check(this.#parsed.root)
    if (this.#errors.count > 0) return this.#errors
    const { types } = this.#out
    types.forEach((type, id) => {
      types[id] = this.#unifier.resolve(type, { unboundIsDyn: true })
    })
    return this.#out
  }

  #error(id: number, message: string): void {
    this.#errors.addAt(this.#parsed.places[id], message)
  }

  #set({ id }: Expression, type: CelType): CelType {
    this.#out.types[id] = type
    return type
  }

  #check(node: Expression): CelType {
    switch (node.kind) {
      case 'literal':
        return this.#set(node, literalType(node.value))
      case 'identifier':
        return this.#identifier(node, node.name)
      case 'select':
        return this.#select(node)
      case 'call':
        return this.#set(node, this.#call(node))
      case 'list':
        return this.#set(node, this.#list(node))
      case 'map':
        return this.#set(node, this.#map(node))
      case 'struct':
        return this.#set(node, this.#struct(node))
      case 'comprehension':
        return this.#set(node, this.#comprehension(node))
    }
  }

  *#candidates(name: string): Generator<string> {
    if (name.startsWith('.')) {
      yield name.slice(1)
      return
    }
    for (let container = this.#declared.container; container !== '';) {
      yield `${container}.${name}`
      container = container.slice(0, Math.max(container.lastIndexOf('.'), 0))
    }
    yield name
  }

  #lookUp(name: string): Meaning | undefined {
    for (const candidate of this.#candidates(name)) {
      const local = this.#scopes.findLast((scope) => scope.has(candidate))?.get(candidate)
      const variable = local ?? this.#declared.variables.get(candidate)
      if (variable !== undefined) return { kind: 'variable', name: candidate, type: variable }
      const type = this.#declared.typeNames.get(candidate) ?? this.#declared.struct(candidate)?.type
      if (type !== undefined) return { kind: 'typeName', name: candidate, type }
    }
    return undefined
  }

  #lookUpFunction(name: string): FunctionDeclaration | undefined {
    for (const candidate of this.#candidates(name)) {
      const found = this.#declared.functions.get(candidate)
      if (found !== undefined) return found
    }
    return undefined
  }

  #undeclared(id: number, name: string): CelType {
    this.#error(id, `undeclared reference to '${name}' (in container '${this.#declared.container}')`)
    return errorType
  }

  #refer(node: Expression, { kind, name, type }: Meaning): CelType {
    this.#out.rewrite({ kind: 'identifier', id: node.id, name })
    if (kind === 'variable') {
      this.#out.variables.add(name)
      return this.#set(node, type)
    }
    this.#out.typeNames[node.id] = type
    return this.#set(node, typeOf(type))
  }

  #identifier(node: Expression, name: string): CelType {
    const meaning = this.#lookUp(name)
    return meaning === undefined ? this.#set(node, this.#undeclared(node.id, name)) : this.#refer(node, meaning)
  }

  #select(node: Select): CelType {
    const name = qualifiedName(node)
    const meaning = name === undefined ? undefined : this.#lookUp(name)
    if (meaning !== undefined) return this.#refer(node, meaning)
    const field = this.#field(node.id, node.operand, node.field, { optional: false })
    return this.#set(node, node.testOnly ? boolType : this.#unifier.resolve(field))
  }

  #field(id: number, operand: Expression, field: string, { optional }: { optional: boolean }): CelType {
    const operandType = this.#unifier.resolve(this.#check(operand))
    const wasOptional = isOptional(operandType)
    const target = wasOptional ? paramOf(operandType, 0) : operandType
    const result = this.#fieldOf(id, target, field)
    return wasOptional || optional ? optionalOf(result) : result
  }

  #fieldOf(id: number, target: CelType, field: string): CelType {
    switch (target.kind) {
      case 'map':
        return paramOf(target, 1)
      case 'struct':
        return this.#structField(id, target.name, field)
      case 'param':
        this.#unifier.assign(dynType, target)
        return dynType
      default:
        if (!isDyn(target) && target.kind !== 'error')
          this.#error(id, `type '${printType(target)}' does not support field selection`)
        return dynType
    }
  }

  #structField(id: number, typeName: string, field: string): CelType {
    const struct = this.#declared.struct(typeName)
    if (struct === undefined) {
      this.#error(id, `unexpected failed resolution of '${typeName}'`)
      return errorType
    }
    const type = struct.fieldType(field)
    if (type === undefined) this.#error(id, `undefined field '${field}'`)
    return type ?? errorType
  }

  #optionalSelect(node: Call): CelType {
    const [operand, field] = node.args
    if (operand === undefined || field?.kind !== 'literal' || typeof field.value !== 'string') return errorType
    const result = this.#field(node.id, operand, field.value, { optional: true })
    const declaration = this.#declared.functions.get(node.name)
    if (declaration !== undefined)
      this.#out.functions[node.id] = { declaration, overloadIds: ['select_optional_field'] }
    this.#set(field, stringType)
    return this.#unifier.resolve(result)
  }

  #call(node: Call): CelType {
    if (node.name === '_?._') return this.#optionalSelect(node)
    for (const arg of node.args) this.#check(arg)
    const { target } = node
    if (target === undefined) {
      const fn = this.#lookUpFunction(node.name)
      if (fn === undefined) return this.#undeclared(node.id, node.name)
      this.#out.rewrite({ ...node, name: fn.name })
      return this.#resolve(node, fn, node.args, false)
    }
    const prefix = qualifiedName(target)
    const namespaced = prefix === undefined ? undefined : this.#lookUpFunction(`${prefix}.${node.name}`)
    if (namespaced !== undefined) {
      this.#out.rewrite({ kind: 'call', id: node.id, name: namespaced.name, args: node.args })
      return this.#resolve(node, namespaced, node.args, false)
    }
    this.#check(target)
    const fn = this.#lookUpFunction(node.name)
    if (fn === undefined) return this.#undeclared(node.id, node.name)
    return this.#resolve(node, fn, [target, ...node.args], true)
  }

  #resolve(node: Call, fn: FunctionDeclaration, args: readonly Expression[], isMember: boolean): CelType {
    if (fn.name === '_&&_' || fn.name === '_||_') return this.#logical(node, fn, args)
    const argTypes = args.map((arg) => this.#out.typeOf(arg))
    const overloadIds: string[] = []
    let result: CelType | undefined
    for (const overload of fn.overloads) {
      if (overload.member !== isMember) continue
      const { params, result: declared } = this.#instantiate(overload)
      if (!this.#unifier.assignAll(argTypes, params)) continue
      overloadIds.push(overload.id)
      const type = this.#unifier.resolve(declared)
      if (result === undefined) result = type
      else if (!isDyn(result) && !isSameType(type, result)) result = dynType
    }
    if (result === undefined) return this.#noOverload(node.id, fn.name, argTypes, isMember)
    this.#out.functions[node.id] = { declaration: fn, overloadIds }
    return result
  }

  #logical(node: Call, declaration: FunctionDeclaration, args: readonly Expression[]): CelType {
    let failed = false
    for (const arg of args) {
      const type = this.#out.typeOf(arg)
      if (this.#unifier.assign(type, boolType)) continue
      this.#mismatch(arg.id, boolType, type)
      failed = true
    }
    const first = declaration.overloads[0]
    this.#out.functions[node.id] = { declaration, overloadIds: first === undefined ? [] : [first.id] }
    return failed ? errorType : boolType
  }

  // Fresh type parameters for every use of an overload.
  #instantiate(overload: Overload): Pick<Overload, 'params' | 'result'> {
    if (overload.typeParams.length === 0) return overload
    const fresh = new Map(overload.typeParams.map((name) => [name, this.#freeParam()]))
    const replace = (type: CelType): CelType => {
      if (type.kind === 'param') return fresh.get(type.name) ?? type
      return type.params.length === 0 ? type : { ...type, params: type.params.map(replace) }
    }
    return { params: overload.params.map(replace), result: replace(overload.result) }
  }

  #freeParam(): CelType {
    this.#freeParams += 1
    return typeParam(`_var${String(this.#freeParams - 1)}`)
  }

  #noOverload(id: number, name: string, argTypes: readonly CelType[], isMember: boolean): CelType {
    const shown = argTypes.map((type) => printType(this.#unifier.resolve(type, { unboundIsDyn: true })))
    const target = isMember ? `${shown.shift() ?? ''}.` : ''
    this.#error(id, `found no matching overload for '${name}' applied to '${target}(${shown.join(', ')})'`)
    return errorType
  }

  #mismatch(id: number, expected: CelType, actual: CelType): void {
    this.#error(id, `expected type '${printType(expected)}' but found '${printType(actual)}'`)
  }

  // The type of an element that is written `?element`.
  #unwrapped(node: Expression, type: CelType): CelType {
    const known = this.#unifier.resolve(type)
    if (isOptional(known)) return paramOf(known, 0)
    if (!isDyn(known)) this.#mismatch(node.id, optionalOf(known), known)
    return known
  }

  #join(before: CelType | undefined, type: CelType): CelType {
    if (before === undefined) return type
    return this.#unifier.assign(before, type) ? mostGeneral(before, type) : dynType
  }

  #list(node: ListLiteral): CelType {
    let joined: CelType | undefined
    node.elements.forEach((element, i) => {
      const type = this.#check(element)
      joined = this.#join(joined, node.optional.has(i) ? this.#unwrapped(element, type) : type)
    })
    return listOf(joined ?? this.#freeParam())
  }

  #map(node: MapLiteral): CelType {
    let keys: CelType | undefined
    let values: CelType | undefined
    for (const { key, value, optional } of node.entries) {
      keys = this.#join(keys, this.#check(key))
      const type = this.#check(value)
      values = this.#join(values, optional ? this.#unwrapped(value, type) : type)
    }
    return mapOf(keys ?? this.#freeParam(), values ?? this.#freeParam())
  }

  #struct(node: StructLiteral): CelType {
    const meaning = this.#lookUp(node.typeName)
    if (meaning === undefined) return this.#undeclared(node.id, node.typeName)
    let result = errorType
    let name = meaning.name
    if (meaning.kind !== 'typeName') this.#error(node.id, `'${printType(meaning.type)}' is not a type`)
    else if (meaning.type.kind !== 'struct') this.#error(node.id, `'${meaning.type.name}' is not a message type`)
    else {
      result = meaning.type
      name = meaning.type.name
    }
    this.#out.rewrite({ ...node, typeName: name })
    this.#set(node, result)
    for (const field of node.fields) {
      const type = this.#check(field.value)
      const declared = this.#structField(field.id, name, field.name)
      const actual = field.optional ? this.#unwrapped(field.value, type) : type
      if (this.#unifier.assign(declared, actual)) continue
      const types = `is '${printType(declared)}' but provided type is '${printType(actual)}'`
      this.#error(field.id, `expected type of field '${field.name}' ${types}`)
    }
    return result
  }

  #comprehension(node: Comprehension): CelType {
    const range = this.#unifier.resolve(this.#check(node.range))
    const accumulated = this.#check(node.accuInit)
    this.#scopes.push(new Map([[node.accuVar, accumulated]]))
    this.#scopes.push(this.#loopVariables(node, this.#unifier.resolve(range)))
    this.#expectType(node.condition, boolType)
    this.#expectType(node.step, accumulated)
    this.#scopes.pop()
    const result = this.#check(node.result)
    this.#scopes.pop()
    return this.#unifier.resolve(result)
  }

  #loopVariables({ iterVar, iterVar2, range }: Comprehension, type: CelType): Map<string, CelType> {
    const [first, second] = this.#elementTypes(range, type, iterVar2 !== '')
    const variables = new Map([[iterVar, first]])
    if (iterVar2 !== '') variables.set(iterVar2, second)
    return variables
  }

  #elementTypes(range: Expression, type: CelType, two: boolean): readonly [CelType, CelType] {
    switch (type.kind) {
      case 'list':
        return two ? [intType, paramOf(type, 0)] : [paramOf(type, 0), dynType]
      case 'map':
        return [paramOf(type, 0), paramOf(type, 1)]
      case 'dyn':
      case 'error':
      case 'param':
        this.#unifier.assign(dynType, type)
        return [dynType, dynType]
      default: {
        const rule = 'cannot be range of a comprehension (must be list, map, or dynamic)'
        this.#error(range.id, `expression of type '${printType(type)}' ${rule}`)
        return [errorType, errorType]
      }
    }
  }

  #expectType(node: Expression, expected: CelType): void {
    const type = this.#check(node)
    if (!this.#unifier.assign(expected, type)) this.#mismatch(node.id, expected, type)
  }
}

function literalType(value: Value): CelType {
  if (value === null) return nullType
  if (typeof value === 'string') return stringType
  if (typeof value === 'boolean') return boolType
  if (isInt(value)) return intType
  if (value instanceof CelDouble) return doubleType
  return value instanceof CelUint ? uintType : bytesType
}

// The parser: text to expression, macros expanded, by CEL's grammar and with cel-go's limits.
import { CelUint, CelDouble, intValue, type Value } from '#apimachinery/cel/values/value.ts'
import type { Expression, FieldEntry, MapEntry, ParsedExpression } from './expression.ts'
import { type Macro, MacroError, macroKey } from './macro.ts'
import { NodeFactory, TooManyNodes } from './node-factory.ts'
import { codePointCount, noLocation, SourceErrors } from './source.ts'
import { unescapeBytes, unescapeString } from './string-literal.ts'
import { type Token, tokenize } from './tokens.ts'

const maxCodePoints = 100_000
const maxDepth = 250
const maxSyntaxErrors = 100

const reserved: ReadonlySet<string> = new Set(
  'as break const continue else for function if import let loop package namespace return var void while'.split(' '),
)

// What a message says may begin an expression, by what stands before it.
const operands = (open: string, afterParen = '', afterDot = '', afterNot = ''): string =>
  `{'[', ${open}'{', ${afterParen}'.', ${afterDot}'-', '!', ${afterNot}'true', 'false', 'null', ` +
  'NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}'
const anywhere = operands('', "'(', ")
const inCall = operands('', "'(', ')', ")
const inIndex = operands('', "'(', ", '', "'?', ")
const inList = operands("']', ", "'(', ", "',', ", "'?', ")
const inMap = operands('', "'}', '(', ", "',', ", "'?', ")
const beginners: ReadonlySet<string> = new Set(
  '[ { ( . - ! true false null NUM_FLOAT NUM_INT NUM_UINT STRING BYTES IDENTIFIER'.split(' '),
)
// What may come after a whole operand.
const operators: ReadonlySet<string> = new Set('< <= >= > == != in && || ? + - * / % . ['.split(' '))
const closers: ReadonlySet<string> = new Set(') ] } , :'.split(' '))
const relations: ReadonlySet<string> = new Set(['<', '<=', '>=', '>', '==', '!=', 'in'])
const sums: ReadonlySet<string> = new Set(['+', '-'])
const products: ReadonlySet<string> = new Set(['*', '/', '%'])

export interface ParserOptions {
  readonly macros: ReadonlyMap<string, Macro>
}

// Kubernetes does not enable quoted names of fields.
const unsupportedQuote = "unsupported syntax: '`'"

type Rule = 'expr' | 'relation' | 'calc' | 'member'

/** Terms of && or ||, with the places of the operators between them. */
interface Chain {
  readonly name: string
  readonly terms: readonly Expression[]
  readonly places: readonly number[]
}

/** Ends the parsing of a text whose rest says nothing more. */
class Abandoned extends Error {}

/** Parses an expression. The errors, where it is none. */
export function parse(text: string, options: ParserOptions): ParsedExpression | SourceErrors {
  const errors = new SourceErrors(text)
  const size = codePointCount(text)
  if (size > maxCodePoints) {
    const sizes = `size: ${String(size)}, limit ${String(maxCodePoints)}`
    errors.add(noLocation, `expression code point size exceeds limit: ${sizes}`)
    return errors
  }
  try {
    const parser = new Parser(text, options, errors)
    const root = parser.parse()
    if (errors.count === 0) return { text, root, places: parser.make.places }
  } catch (error) {
    if (error instanceof TooManyNodes) errors.add(noLocation, 'expression is too large after its macros are expanded')
    else if (!(error instanceof Abandoned)) throw error
  }
  return errors
}

class Parser {
  readonly make = new NodeFactory()
  readonly #text: string
  readonly #options: ParserOptions
  readonly #errors: SourceErrors
  readonly #tokens: Token[]
  readonly #depth: Record<Rule, number> = { expr: 0, relation: 0, calc: 0, member: 0 }
  // Levels of operators below each node: cel-go limits them when it turns its parse tree into an expression.
  readonly #levels = new WeakMap<Expression, number>()
  #at = 0
  // What a message says about the next operand.
  #expecting = anywhere
  // Brackets and `?` that are not closed yet.
  #open = 0
  // An error was reported and no token was taken since: what follows from it is not reported.
  #recovering = false

  constructor(text: string, options: ParserOptions, errors: SourceErrors) {
    this.#text = text
    this.#options = options
    this.#errors = errors
    this.#tokens = tokenize(text, (index, found) => {
      this.#syntaxError(index, `token recognition error at: '${printable(found)}'`)
    })
  }

  parse(): Expression {
    const root = this.#expr()
    if (this.#peek.type !== '<EOF>') this.#unexpected('<EOF>', this.#second === '<EOF>')
    return root
  }

  get #peek(): Token {
    return this.#tokens[this.#at] ?? { type: '<EOF>', text: '<EOF>', start: this.#text.length }
  }

  get #second(): string {
    return this.#tokens[this.#at + 1]?.type ?? '<EOF>'
  }

  get #shown(): string {
    return printable(this.#peek.text)
  }

  #next(): Token {
    const token = this.#peek
    this.#at += 1
    this.#recovering = false
    return token
  }

  #accept(type: string): Token | undefined {
    return this.#peek.type === type ? this.#next() : undefined
  }

  // Takes a token. Where it is missing, one token too many is left out, or the missing one is thought of, as ANTLR
  // does.
  #expect(type: string, expecting = `'${type}'`): Token {
    if (this.#peek.type === type) return this.#next()
    if (this.#second === type) {
      this.#unexpected(expecting, true)
      this.#at += 1
      return this.#next()
    }
    const thoughtOf: Token = { type, text: '', start: this.#peek.start }
    if (!expecting.startsWith('{') && this.#mayFollow(type)) this.#syntax(`missing ${expecting} at '${this.#shown}'`)
    else {
      this.#unexpected(expecting, false)
      this.#recover()
    }
    return thoughtOf
  }

  #mayFollow(missing: string): boolean {
    const { type } = this.#peek
    if (missing === ':') return beginners.has(type)
    if (!')]}'.includes(missing)) return false
    if (type === '<EOF>') return this.#open === 1
    return operators.has(type) || (closers.has(type) && this.#open > 1)
  }

  #unexpected(expecting: string, extraneous: boolean): void {
    this.#syntax(`${extraneous ? 'extraneous' : 'mismatched'} input '${this.#shown}' expecting ${expecting}`)
  }

  #syntax(message: string): void {
    if (this.#recovering) return
    this.#recovering = true
    this.#syntaxError(this.#peek.start, message)
  }

  // Skips to a token that may come after an operand.
  #recover(): void {
    while (this.#peek.type !== '<EOF>' && !operators.has(this.#peek.type) && !closers.has(this.#peek.type))
      this.#at += 1
  }

  #syntaxError(index: number, message: string): void {
    if (this.#errors.count >= maxSyntaxErrors) {
      this.#errors.addAt(index, `Syntax error: More than ${String(maxSyntaxErrors)} syntax errors`)
      throw new Abandoned()
    }
    this.#errors.addAt(index, `Syntax error: ${message}`)
  }

  // An operand that is not there.
  #missing(expecting: string, previous?: string): Expression {
    const { start } = this.#peek
    if (previous === undefined && beginners.has(this.#second) && this.#peek.type !== '<EOF>') {
      this.#unexpected(expecting, true)
      this.#at += 1
      return this.#member(expecting)
    }
    if (previous === '-') {
      this.#syntax(`no viable alternative at input '-${this.#peek.type === '<EOF>' ? '' : this.#shown}'`)
      this.#recovering = false
    }
    this.#unexpected(expecting, previous === '!')
    this.#recover()
    return this.make.literal(start, null)
  }

  #report(place: number | undefined, message: string): Expression {
    this.#errors.addAt(place, message)
    return this.make.literal(place, null)
  }

  #enter(rule: Rule): void {
    this.#depth[rule] += 1
    if (this.#depth[rule] <= maxDepth) return
    this.#errors.add(noLocation, `expression recursion limit exceeded: ${String(maxDepth)}`)
    throw new Abandoned()
  }

  #leave(rule: Rule, levels = 1): void {
    this.#depth[rule] -= levels
  }

  #level(node: Expression, ...below: (Expression | undefined)[]): Expression {
    const levels = 1 + Math.max(0, ...below.map((child) => (child === undefined ? 0 : (this.#levels.get(child) ?? 0))))
    if (levels > maxDepth) {
      this.#errors.add(noLocation, 'max recursion depth exceeded')
      throw new Abandoned()
    }
    this.#levels.set(node, levels)
    return node
  }

  #expr(expecting = anywhere): Expression {
    this.#enter('expr')
    this.#expecting = expecting
    let node = this.#logical('||')
    const op = this.#accept('?')
    if (op !== undefined) {
      this.#open += 1
      const yes = this.#logical('||')
      this.#expect(':')
      this.#open -= 1
      const no = this.#expr()
      node = this.#level(this.#call(op.start, '_?_:_', node, yes, no), node, yes, no)
    }
    this.#leave('expr')
    return node
  }

  #logical(op: '||' | '&&'): Expression {
    const below = (): Expression => (op === '||' ? this.#logical('&&') : this.#relation())
    const terms = [below()]
    const places: number[] = []
    for (let token = this.#accept(op); token !== undefined; token = this.#accept(op)) {
      terms.push(below())
      places.push(token.start)
    }
    return this.#balanced({ name: `_${op}_`, terms, places }, 0, places.length - 1)
  }

  // A long chain of && or || becomes a balanced tree.
  #balanced(chain: Chain, low: number, high: number): Expression {
    const { name, terms, places } = chain
    const middle = (low + high + 1) >> 1
    const first = terms[middle]
    if (first === undefined || terms.length === 1) return terms[0] as Expression
    const left = middle === low ? first : this.#balanced(chain, low, middle - 1)
    const last = terms[middle + 1] as Expression
    const right = middle === high ? last : this.#balanced(chain, middle + 1, high)
    const node = this.make.call(places[middle], name, left, right)
    this.#levels.set(node, Math.max(this.#levels.get(left) ?? 0, this.#levels.get(right) ?? 0))
    return node
  }

  #relation(): Expression {
    return this.#chain('relation', relations, () => this.#sum())
  }

  #sum(): Expression {
    return this.#chain('calc', sums, () => this.#chain('calc', products, () => this.#unary()))
  }

  #chain(rule: Rule, operators: ReadonlySet<string>, below: () => Expression): Expression {
    this.#enter(rule)
    let levels = 1
    let node = below()
    while (operators.has(this.#peek.type)) {
      const op = this.#next()
      this.#enter(rule)
      levels += 1
      const right = below()
      const name = op.type === 'in' ? '@in' : `_${op.type}_`
      node = this.#level(this.#call(op.start, name, node, right), node, right)
    }
    this.#leave(rule, levels)
    return node
  }

  #unary(): Expression {
    const expecting = this.#expecting
    this.#expecting = anywhere
    const first = this.#peek
    if (first.type !== '!' && first.type !== '-') return this.#member(expecting)
    if (first.type === '-' && this.#isNegativeNumber()) return this.#member(expecting)
    let count = 0
    while (this.#accept(first.type) !== undefined) count += 1
    const target = this.#member(anywhere, first.type)
    if (count % 2 === 0) return target
    const node = this.#call(first.start, first.type === '!' ? '!_' : '-_', target)
    this.#levels.set(node, this.#levels.get(target) ?? 0)
    return node
  }

  #isNegativeNumber(): boolean {
    const type = this.#tokens[this.#at + 1]?.type
    return type === 'NUM_INT' || type === 'NUM_FLOAT'
  }

  #member(expecting: string, previous?: string): Expression {
    if (!this.#beginsPrimary()) return this.#missing(expecting, previous)
    this.#enter('member')
    let levels = 1
    let node = this.#primary()
    for (;;) {
      const op = this.#accept('.') ?? this.#accept('[')
      if (op === undefined) break
      this.#enter('member')
      levels += 1
      const operandNode = node
      node = op.type === '.' ? this.#selection(op, node) : this.#index(op, node)
      this.#level(node, operandNode)
    }
    this.#leave('member', levels)
    return node
  }

  #beginsPrimary(): boolean {
    const { type } = this.#peek
    return type === '-' ? this.#isNegativeNumber() : type !== '!' && beginners.has(type)
  }

  #selection(op: Token, target: Expression): Expression {
    const optional = this.#accept('?')
    const escaped = this.#accept('ESC_IDENTIFIER')
    if (escaped !== undefined) return this.#report(escaped.start, unsupportedQuote)
    const name = this.#accept('IDENTIFIER')
    if (name === undefined) {
      this.#nameless()
      return target
    }
    if (optional !== undefined)
      return this.make.call(op.start, '_?._', target, this.make.literal(name.start, name.text))
    const open = this.#accept('(')
    if (open === undefined) return this.make.select(op.start, target, name.text)
    return this.#expand(open.start, name.text, target, this.#args())
  }

  // The generated parser looks ahead here, and cel-go rewrites its message for three words.
  #nameless(): void {
    if (keywordText.has(this.#peek.type)) this.#unexpected('IDENTIFIER', false)
    else this.#syntax(`no viable alternative at input '.${this.#peek.type === '<EOF>' ? '' : this.#shown}'`)
    this.#recover()
  }

  #index(op: Token, target: Expression): Expression {
    this.#open += 1
    const optional = this.#accept('?')
    const index = this.#expr(optional === undefined ? inIndex : anywhere)
    this.#expect(']')
    this.#open -= 1
    return this.#call(op.start, optional === undefined ? '_[_]' : '_[?_]', target, index)
  }

  #args(): Expression[] {
    const args: Expression[] = []
    if (this.#accept(')') !== undefined) return args
    this.#open += 1
    args.push(this.#expr(inCall))
    while (this.#accept(',') !== undefined) args.push(this.#expr())
    this.#expect(')')
    this.#open -= 1
    return args
  }

  #primary(): Expression {
    const token = this.#peek
    switch (token.type) {
      case '(': {
        this.#next()
        this.#open += 1
        const node = this.#expr()
        this.#expect(')')
        this.#open -= 1
        return node
      }
      case '[':
        return this.#list()
      case '{':
        return this.#map()
      case '.':
      case 'IDENTIFIER':
        return this.#identifier()
      default:
        return this.#literal()
    }
  }

  #identifier(): Expression {
    const start = this.#peek.start
    const dot = this.#accept('.')
    if (this.#peek.type !== 'IDENTIFIER') {
      this.#nameless()
      return this.make.literal(start, null)
    }
    const struct = this.#structAhead()
    if (struct !== undefined) return this.#struct(dot === undefined ? struct : `.${struct}`)
    const token = this.#next()
    const open = this.#accept('(')
    const args = open === undefined ? [] : this.#args()
    if (reserved.has(token.text)) return this.#report(start, `reserved identifier: ${token.text}`)
    const name = dot === undefined ? token.text : `.${token.text}`
    if (open === undefined) return this.make.identifier(token.start, name)
    return this.#expand(open.start, name, undefined, args)
  }

  // `a.b.C{` begins a struct; everything else with dots is a selection.
  #structAhead(): string | undefined {
    let at = this.#at
    let name = this.#tokens[at]?.text ?? ''
    while (this.#tokens[at + 1]?.type === '.' && this.#tokens[at + 2]?.type === 'IDENTIFIER') {
      at += 2
      name += `.${this.#tokens[at]?.text ?? ''}`
    }
    if (this.#tokens[at + 1]?.type !== '{') return undefined
    this.#at = at + 1
    return name
  }

  #struct(typeName: string): Expression {
    const open = this.#expect('{')
    const fields: FieldEntry[] = []
    const trailing = this.#items('}', () => {
      const optional = this.#accept('?') !== undefined
      const escaped = this.#accept('ESC_IDENTIFIER')
      if (escaped !== undefined) this.#report(open.start, unsupportedQuote)
      const name = escaped ?? this.#expect('IDENTIFIER', "{'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}")
      const id = this.make.id(this.#expect(':').start)
      fields.push({ id, name: name.text, value: this.#expr(), optional })
    })
    this.#close('}', trailing)
    return this.make.struct(open.start, typeName, fields)
  }

  #list(): Expression {
    const open = this.#next()
    const elements: Expression[] = []
    const optional = new Set<number>()
    const trailing = this.#items(']', () => {
      if (this.#accept('?') !== undefined) optional.add(elements.length)
      elements.push(this.#expr(elements.length === 0 ? inList : anywhere))
    })
    this.#close(']', trailing)
    return this.make.list(open.start, elements, optional)
  }

  #map(): Expression {
    const open = this.#next()
    const entries: MapEntry[] = []
    const trailing = this.#items('}', () => {
      const optional = this.#accept('?') !== undefined
      const key = this.#expr(entries.length === 0 ? inMap : anywhere)
      const id = this.make.id(this.#expect(':').start)
      entries.push({ id, key, value: this.#expr(), optional })
    })
    this.#close('}', trailing)
    return this.make.map(open.start, entries)
  }

  // Items between commas. True where a comma comes last.
  #items(close: string, item: () => void): boolean {
    this.#open += 1
    if (this.#peek.type === close) return false
    if (this.#accept(',') !== undefined) return true
    for (;;) {
      item()
      if (this.#accept(',') === undefined) return false
      const { type } = this.#peek
      if (!beginners.has(type) && type !== '?' && type !== 'ESC_IDENTIFIER') return true
    }
  }

  #close(close: string, trailing: boolean): void {
    this.#expect(close, trailing ? `'${close}'` : `{'${close}', ','}`)
    this.#open -= 1
  }

  #literal(): Expression {
    const start = this.#peek.start
    const sign = this.#peek.type === '-' && this.#isNegativeNumber() ? this.#next().text : ''
    const token = this.#peek
    const value = this.#literalValue(token, sign)
    if (value === undefined) return this.#missing(anywhere)
    this.#next()
    if (isBad(value)) return this.#report(start, value.error)
    return this.make.literal(start, value)
  }

  #literalValue({ type, text }: Token, sign: string): Value | { error: string } | undefined {
    switch (type) {
      case 'NUM_INT':
        return intLiteral(text, sign)
      case 'NUM_UINT': {
        const value = BigInt(text.slice(0, -1))
        return value > 0xffff_ffff_ffff_ffffn ? { error: 'invalid uint literal' } : new CelUint(value)
      }
      case 'NUM_FLOAT': {
        const value = Number(sign + text)
        return Number.isFinite(value) ? new CelDouble(value) : { error: 'invalid double literal' }
      }
      case 'STRING':
        return unescapeString(text)
      case 'BYTES':
        return unescapeBytes(text)
      case 'true':
      case 'false':
        return type === 'true'
      case 'null':
        return null
      default:
        return undefined
    }
  }

  #call(place: number, name: string, ...args: Expression[]): Expression {
    return this.#expand(place, name, undefined, args)
  }

  #expand(at: number, name: string, target: Expression | undefined, args: Expression[]): Expression {
    const macro = this.#options.macros.get(macroKey(name, target !== undefined, args.length))
    try {
      const expanded = macro?.expand({ make: this.make, at, target, args })
      if (expanded !== undefined) return expanded
    } catch (error) {
      if (!(error instanceof MacroError)) throw error
      return this.#report(this.make.places[error.node.id], error.message)
    }
    return target === undefined ? this.make.call(at, name, ...args) : this.make.memberCall(at, target, name, ...args)
  }
}

const keywordText: ReadonlySet<string> = new Set(['true', 'false', 'null'])

function intLiteral(text: string, sign: string): Value | { error: string } {
  const value = sign === '-' ? -BigInt(text) : BigInt(text)
  return BigInt.asIntN(64, value) === value ? intValue(value) : { error: 'invalid int literal' }
}

const isBad = (value: Value | { error: string }): value is { error: string } =>
  typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype

const printable = (text: string): string =>
  text.replaceAll('\\', '\\').replaceAll('\n', '\\n').replaceAll('\r', '\\r').replaceAll('\t', '\\t')

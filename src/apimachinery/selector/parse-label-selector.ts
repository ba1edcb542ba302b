// Parses the text form of label selectors, `a=b,c!=d,e in (x,y),f notin (z),g,!h,k>1`: the labelSelector parameter.
// Accepts and refuses what upstream's parser does, with its messages.
import { fieldInvalid, causeText, qualifiedNameErrors } from '#apimachinery/field/index.ts'
import { badRequest } from '#apimachinery/status/index.ts'
import { requirementError, type LabelOperator, type LabelRequirement } from './label-requirement.ts'
import { everything, selectorOf, type LabelSelector } from './label-selector.ts'

/** Parses the labelSelector parameter of a request. Empty text matches everything. Throws BadRequest. */
export function parseLabelSelector(text: string): LabelSelector {
  if (text === '') return everything
  return selectorOf(parseAll(new Tokens(text)))
}

type Kind = 'word' | 'symbol' | 'end' | 'error'
interface Token {
  readonly kind: Kind
  readonly text: string
}

const end: Token = { kind: 'end', text: '' }
const symbols = new Set([')', ',', '!', '==', '=', '>', '<', '!=', '('])
const special = /[=!(),<>]/
const space = /[ \t\r\n]/

/**
 * The tokens of a selector and the position of the reader. The position decides whether `in` and `notin` are operators.
 */
class Tokens {
  readonly #tokens: Token[] = []
  #next = 0

  constructor(text: string) {
    // Upstream's lexer stops at a NUL.
    const nul = text.indexOf('\0')
    const source = nul < 0 ? text : text.slice(0, nul)
    let at = 0
    while (at < source.length) {
      const char = source.charAt(at)
      if (space.test(char)) {
        at++
        continue
      }
      let to = at
      if (special.test(char)) {
        const two = source.slice(at, at + 2)
        to = symbols.has(two) ? at + 2 : at + 1
        this.#tokens.push({ kind: 'symbol', text: source.slice(at, to) })
      } else {
        while (to < source.length && !special.test(source.charAt(to)) && !space.test(source.charAt(to))) to++
        this.#tokens.push({ kind: 'word', text: source.slice(at, to) })
      }
      at = to
    }
  }

  peek(): Token {
    return this.#tokens[this.#next] ?? end
  }
  take(): Token {
    const token = this.peek()
    this.#next++
    return token
  }
}

function isSymbol({ kind, text }: Token, symbol: string): boolean {
  return kind === 'symbol' && text === symbol
}

function parseAll(tokens: Tokens): LabelRequirement[] {
  const requirements: LabelRequirement[] = []
  for (;;) {
    const token = tokens.peek()
    if (token.kind === 'end') return requirements
    if (token.kind !== 'word' && !isSymbol(token, '!')) {
      throw badRequest(`found '${token.text}', expected: !, identifier, or 'end of string'`)
    }
    requirements.push(parseRequirement(tokens))
    const after = tokens.take()
    if (after.kind === 'end') return requirements
    if (!isSymbol(after, ',')) throw badRequest(`found '${after.text}', expected: ',' or 'end of string'`)
    const next = tokens.peek()
    if (next.kind !== 'word' && !isSymbol(next, '!')) {
      throw badRequest(`found '${next.text}', expected: identifier after ','`)
    }
  }
}

function unparsable(why: string): Error {
  return badRequest(`unable to parse requirement: ${why}`)
}

function parseRequirement(tokens: Tokens): LabelRequirement {
  let token = tokens.take()
  const negated = isSymbol(token, '!')
  if (negated) token = tokens.take()
  if (token.kind !== 'word') throw unparsable(`found '${token.text}', expected: identifier`)
  const key = token.text
  const keyErrors = qualifiedNameErrors(key)
  if (keyErrors.length > 0) throw unparsable(causeText(fieldInvalid('', key, keyErrors.join('; '))))
  const next = tokens.peek()
  const alone = next.kind === 'end' || isSymbol(next, ',')
  if (negated) return checked({ key, operator: '!', values: [] })
  if (alone) return checked({ key, operator: 'exists', values: [] })
  const operator = parseOperator(tokens)
  const values = operator === 'in' || operator === 'notin' ? parseValues(tokens) : [parseExactValue(tokens)]
  return checked({ key, operator, values: [...new Set(values)].sort() })
}

function checked(requirement: LabelRequirement): LabelRequirement {
  const error = requirementError(requirement)
  if (error !== undefined) throw unparsable(error)
  return requirement
}

const binaryOperators: Readonly<Record<string, LabelOperator>> = {
  in: 'in',
  notin: 'notin',
  '=': '=',
  '==': '==',
  '!=': '!=',
  '>': 'gt',
  '<': 'lt',
}

function parseOperator(tokens: Tokens): LabelOperator {
  const { text } = tokens.take()
  const operator = Object.hasOwn(binaryOperators, text) ? binaryOperators[text] : undefined
  if (operator === undefined) throw unparsable(`found '${text}', expected: in, notin, =, ==, !=, gt, lt`)
  return operator
}

function parseValues(tokens: Tokens): string[] {
  const open = tokens.take()
  if (!isSymbol(open, '(')) throw unparsable(`found '${open.text}' expected: '('`)
  const first = tokens.peek()
  if (isSymbol(first, ')')) {
    tokens.take()
    return ['']
  }
  if (first.kind !== 'word' && !isSymbol(first, ',')) {
    throw unparsable(`found '${first.text}', expected: ',', ')' or identifier`)
  }
  const values: string[] = []
  for (;;) {
    const token = tokens.take()
    const next = tokens.peek()
    if (token.kind === 'word') {
      values.push(token.text)
      if (isSymbol(next, ',')) continue
      if (!isSymbol(next, ')')) throw unparsable(`found '${next.text}', expected: ',' or ')'`)
    } else if (isSymbol(token, ',')) {
      if (values.length === 0) values.push('')
      if (isSymbol(next, ',')) {
        tokens.take()
        values.push('')
      }
      if (!isSymbol(next, ')')) continue
      values.push('')
    } else throw unparsable(`found '${token.text}', expected: ',', or identifier`)
    tokens.take()
    return values
  }
}

function parseExactValue(tokens: Tokens): string {
  const next = tokens.peek()
  if (next.kind === 'end' || isSymbol(next, ',')) return ''
  const token = tokens.take()
  if (token.kind !== 'word') throw unparsable(`found '${token.text}', expected: identifier`)
  return token.text
}

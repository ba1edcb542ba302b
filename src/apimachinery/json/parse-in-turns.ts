// Parses a large JSON document in pieces, so that other work runs in between. One pass over the bytes bounds depth and
// number of values and finds where the document can be cut; JSON.parse reads the pieces.
import { isJsonObject, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { badRequest, requestEntityTooLarge } from '#apimachinery/status/index.ts'
import { defaultMaxJsonBytes, defaultMaxJsonDepth, parseJson, tooManyValues, type JsonLimits } from './parse-json.ts'
import { parseJsonText } from './parse-text.ts'

export interface TurnOptions extends JsonLimits {
  /** Maximum number of values. Default 300,000: several objects. */
  readonly maxValues?: number
  /** Called between pieces. Its promise is awaited; undefined if there is no need to wait. */
  readonly turn: () => Promise<void> | undefined
  /** The top-level members of the document that are kept; others are only counted. Default: all. */
  readonly only?: ReadonlySet<string>
}

const defaultMaxValues = 300_000
/** Minimum size of a piece in bytes, where the document can be cut. */
const pieceBytes = 32 * 1024
/** Bytes of the first pass between two turns. */
const scanBytes = 128 * 1024

/** An object or a list that is larger than a piece. */
interface Large {
  readonly start: number
  /** The position after its closing bracket. */
  end: number
  /** Its pieces: each is a run of small members, or one member with a large value. */
  readonly pieces: Piece[]
}

interface Piece {
  readonly start: number
  large?: Large
}

interface Level extends Large {
  readonly closing: number
  /** Start of the current member, its name included. */
  member: number
}

const [quote, backslash, colon, comma, openBracket, closeBracket, openBrace, closeBrace] = [
  34, 92, 58, 44, 91, 93, 123, 125,
]

/**
 * Parses a document. Rejects as `parseJson` throws: RequestEntityTooLarge above `maxBytes` or `maxValues`, BadRequest
 * above `maxDepth` or for a syntax error.
 */
export async function parseJsonInTurns(
  bytes: Uint8Array,
  {
    maxBytes = defaultMaxJsonBytes,
    maxDepth = defaultMaxJsonDepth,
    maxValues = defaultMaxValues,
    turn,
    only,
  }: TurnOptions,
): Promise<JsonValue> {
  if (bytes.length <= pieceBytes) {
    const { value } = parseJson(bytes, { maxBytes, maxDepth, maxValues })
    return isJsonObject(value) ? kept(value, only) : value
  }
  if (bytes.length > maxBytes) throw requestEntityTooLarge(`Request entity too large: limit is ${maxBytes}`)
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  const root = await findPieces(buffer, { maxDepth, maxValues, turn })
  if (root === undefined) return parsed(buffer, 0, buffer.length)
  requireBlank(buffer, 0, root.start)
  requireBlank(buffer, root.end, buffer.length)
  return await joined(buffer, root, turn, only)
}

/** The outermost object or list if it is large; undefined if the document is one piece. */
async function findPieces(
  bytes: Buffer,
  { maxDepth, maxValues, turn }: { maxDepth: number; maxValues: number; turn: TurnOptions['turn'] },
): Promise<Large | undefined> {
  const levels: Level[] = []
  let [root, values, rested]: [Large | undefined, number, number] = [undefined, 1, 0]
  for (let i = 0; i < bytes.length; i++) {
    if (i - rested >= scanBytes) {
      rested = i
      if (values > maxValues) throw tooManyValues(maxValues)
      await turn()
    }
    const byte = bytes[i]
    if (byte === quote) i = endOfText(bytes, i)
    else if (byte === comma) {
      values++
      const level = levels.at(-1)
      if (level === undefined) throw syntaxError()
      level.member = i + 1
      const piece = level.pieces.at(-1)
      if (piece?.large !== undefined || i + 1 - (piece?.start ?? 0) >= pieceBytes) level.pieces.push({ start: i + 1 })
    } else if (byte === openBrace || byte === openBracket) {
      values++
      if (levels.length >= maxDepth)
        throw badRequest(`exceeded max depth: the document has more than ${String(maxDepth)} levels`)
      const closing = byte === openBrace ? closeBrace : closeBracket
      levels.push({ start: i, end: 0, closing, member: i + 1, pieces: [{ start: i + 1 }] })
    } else if (byte === closeBrace || byte === closeBracket) {
      const level = levels.pop()
      if (level?.closing !== byte) throw syntaxError()
      level.end = i + 1
      const above = levels.at(-1)
      if (above === undefined) {
        if (root !== undefined) throw syntaxError()
        root = level
      } else if (level.end - level.start >= pieceBytes) {
        if (above.pieces.at(-1)?.start !== above.member) above.pieces.push({ start: above.member })
        const piece = above.pieces.at(-1)
        if (piece !== undefined) piece.large = level
      }
    }
  }
  if (levels.length > 0) throw badRequest('unexpected end of JSON input')
  if (values > maxValues) throw tooManyValues(maxValues)
  return root !== undefined && root.end - root.start >= pieceBytes ? root : undefined
}

/** The position of the closing quote of a text. */
function endOfText(bytes: Buffer, start: number): number {
  let at = bytes.indexOf(quote, start + 1)
  while (at > 0 && bytes[at - 1] === backslash && isEscaped(bytes, at)) at = bytes.indexOf(quote, at + 1)
  if (at < 0) throw badRequest('unexpected end of JSON input')
  return at
}

function isEscaped(bytes: Buffer, quoteAt: number): boolean {
  let at = quoteAt - 1
  while (bytes[at] === backslash) at--
  return (quoteAt - at) % 2 === 0
}

async function joined(
  bytes: Buffer,
  { start, end, pieces }: Large,
  turn: TurnOptions['turn'],
  only?: ReadonlySet<string>,
): Promise<JsonValue> {
  const isList = bytes[start] === openBracket
  const items: JsonValue[] = []
  const members: JsonObject = {}
  for (const [i, piece] of pieces.entries()) {
    const next = pieces[i + 1]
    // The end excludes the comma or the closing bracket after the piece.
    const to = (next?.start ?? end) - 1
    const { large } = piece
    if (large === undefined) {
      // A list or an object may end with an empty piece only if it is empty as a whole; JSON.parse cannot see this.
      if (pieces.length > 1 && isBlank(bytes, piece.start, to)) throw syntaxError()
      if (isList) for (const item of parsedPiece(bytes, piece.start, to, '[]') as JsonValue[]) items.push(item)
      else Object.assign(members, kept(parsedPiece(bytes, piece.start, to, '{}') as JsonObject, only))
    } else {
      requireBlank(bytes, large.end, to)
      if (isList) {
        requireBlank(bytes, piece.start, large.start)
        items.push(await joined(bytes, large, turn))
      } else {
        const name = nameOf(bytes, piece.start, large.start)
        if (only === undefined || only.has(name)) members[name] = await joined(bytes, large, turn)
      }
    }
    await turn()
  }
  return isList ? items : members
}

function kept(members: JsonObject, only: ReadonlySet<string> | undefined): JsonObject {
  return only === undefined ? members : Object.fromEntries(Object.entries(members).filter(([name]) => only.has(name)))
}

function parsedPiece(bytes: Buffer, from: number, to: number, brackets: '[]' | '{}'): JsonValue {
  return textOf(`${brackets[0] ?? ''}${bytes.toString('utf8', from, to)}${brackets[1] ?? ''}`)
}

/** The name of a member, with its colon before `to`. */
function nameOf(bytes: Buffer, from: number, to: number): string {
  const text = bytes.toString('utf8', from, to).trimEnd()
  if (text.charCodeAt(text.length - 1) !== colon) throw syntaxError()
  const name = textOf(text.slice(0, -1))
  if (typeof name !== 'string') throw syntaxError()
  return name
}

function parsed(bytes: Buffer, from: number, to: number): JsonValue {
  return textOf(bytes.toString('utf8', from, to))
}

function textOf(text: string): JsonValue {
  try {
    return parseJsonText(text)
  } catch (cause) {
    throw badRequest('invalid JSON', cause)
  }
}

function requireBlank(bytes: Buffer, from: number, to: number): void {
  if (!isBlank(bytes, from, to)) throw syntaxError()
}

function isBlank(bytes: Buffer, from: number, to: number): boolean {
  for (let i = from; i < to; i++) {
    const byte = bytes[i]
    if (byte !== 32 && byte !== 9 && byte !== 10 && byte !== 13) return false
  }
  return true
}

function syntaxError(): Error {
  return badRequest('invalid JSON')
}

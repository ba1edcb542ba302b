// The field manager of a request (managedFields): given by the client, else derived from its User-Agent.
import { Buffer } from 'node:buffer'

/** Maximum length of a field manager, bytes. */
export const maxFieldManagerLength = 128

const plainProgram = /^[ -~]{1,128}$/

/** The parameter `fieldManager`, else the part of the User-Agent before the first `/`, as kube-apiserver cuts it. */
export function fieldManagerOf(parameter: string | null, userAgent = ''): string {
  if (parameter !== null && parameter !== '') return parameter
  const [program = ''] = userAgent.split('/', 1)
  // The fast path: every write runs this, and nearly all names are printable ASCII.
  if (plainProgram.test(program)) return program
  let name = ''
  let bytes = 0
  for (const character of program) {
    if (!isPrintable(character)) continue
    bytes += Buffer.byteLength(character)
    if (bytes > maxFieldManagerLength) break
    name += character
  }
  return name
}

/** True for a printable character, by the rules of Go's unicode.IsPrint. */
export function isPrintable(character: string): boolean {
  return /[\p{L}\p{M}\p{N}\p{P}\p{S} ]/u.test(character)
}

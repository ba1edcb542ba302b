// Reduces a source map to one mapping for each line. A process that prints a stack keeps all mappings in memory: those
// of every expression of a large bundle take 45 MB, one for each line takes a tenth.

const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
const continued = 32

/** The `mappings` of a source map with only the first mapping of each line, and without names. */
export function lineMappings(mappings: string): string {
  // File, line and column of a source are differences to the mapping before, of whatever line.
  const read = [0, 0, 0]
  const written = [0, 0, 0]
  const lines = mappings.split(';').map((line) => {
    let first: string | undefined
    for (const segment of line.split(',')) {
      const [column, ...source] = fieldsOf(segment)
      if (column === undefined || source.length < read.length) continue
      for (const index of read.keys()) read[index] = (read[index] ?? 0) + (source[index] ?? 0)
      if (first !== undefined) continue
      // Column 0 of the line: whatever was called on it is found.
      first = [0, ...read.map((value, index) => value - (written[index] ?? 0))].map(fieldText).join('')
      for (const index of read.keys()) written[index] = read[index] ?? 0
    }
    return first ?? ''
  })
  return lines.join(';')
}

/** The numbers of a segment, each in digits of five bits, the lowest first, with the sign in the lowest bit. */
function fieldsOf(segment: string): number[] {
  const fields: number[] = []
  let value = 0
  let shift = 0
  for (const character of segment) {
    const digit = digits.indexOf(character)
    value += (digit & (continued - 1)) << shift
    shift += 5
    if (digit >= continued) continue
    fields.push((value & 1) === 1 ? -(value >> 1) : value >> 1)
    value = 0
    shift = 0
  }
  return fields
}

function fieldText(field: number): string {
  let rest = field < 0 ? (-field << 1) | 1 : field << 1
  let text = ''
  do {
    const digit = rest & (continued - 1)
    rest >>= 5
    text += digits[rest > 0 ? digit | continued : digit] ?? ''
  } while (rest > 0)
  return text
}

// Answers that differ from those of kube-apiserver's libraries on purpose.
import type { ApiResponse } from './questions.ts'

interface KnownDifference {
  readonly name: string
  readonly reason: string
  readonly applies: (upstream: ApiResponse, mine: ApiResponse) => boolean
}

export const knownDifferences: readonly KnownDifference[] = [
  {
    name: 'upstream panics',
    reason: 'a bug of cel-go ends the run or the compilation; here the error says what is wrong with the expression',
    applies: ({ error = '', failure }, mine) =>
      failure !== undefined || (error.startsWith('internal error: ') && mine.error !== undefined),
  },
  {
    name: 'keys of unusual types',
    reason: 'keys of maps are scalars, times, durations and types; upstream takes whatever Go can hash',
    applies: (_upstream, { error = '' }) => error.startsWith('unsupported key type: '),
  },
  {
    name: 'indices of unusual types',
    reason: 'the message of upstream names a type of its program',
    applies: ({ error = '' }, mine) => error.startsWith('invalid qualifier type: ') && mine.error !== undefined,
  },
]

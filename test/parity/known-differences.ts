// Where our answers differ from a real server's, by title of the corpus, and why.
const internalStruct =
  'upstream shows a Go struct of its internal version as the value; ours shows the object as it was sent'
const diffText = 'upstream appends a diff of two Go structs to the message'

export const knownDifferences: Readonly<Record<string, string>> = {
  'security context contradictions': internalStruct,
  'pod image changed and command changed': diffText,
  'job template changed': `${internalStruct}, and complains twice about the selector`,
  'claim changed': diffText,
  'autoscaler with min above max': 'an explicitly empty list of policies counts as none and gets the defaults',
  'quota with nonsense': 'upstream adds a second complaint about a scope it does not know',
}

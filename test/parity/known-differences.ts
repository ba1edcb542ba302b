// Where our answers differ from a real server's, by title of the corpus, and why.
export const knownDifferences: Readonly<Record<string, string>> = {
  'autoscaler with min above max': 'an explicitly empty list of policies counts as none and gets the defaults',
}

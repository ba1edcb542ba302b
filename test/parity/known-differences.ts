// Cases of the corpus in which our answer differs from a real server's, by title, with the reason.
export const knownDifferences: Readonly<Record<string, string>> = {
  'admission policy': 'the types are checked when the policy is written, not by a controller afterwards (status)',
  'autoscaler with min above max': 'an explicitly empty list of policies counts as none and gets the defaults',
}

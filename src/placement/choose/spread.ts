// Spread over domains: members with the same value of a label, such as a region, are one domain.
import type { Candidate, Demand, Spread } from '#placement/rules/candidate.ts'

/** Of the members that fit, those on which another copy keeps the domains even. Each spread rule is applied to the rest. */
export function keepEven(fitting: readonly Candidate[], { spread }: Demand): readonly Candidate[] {
  return spread.reduce((left, rule) => evenBy(rule, left), fitting)
}

function evenBy({ topologyKey, maxSkew, minDomains = 1 }: Spread, candidates: readonly Candidate[]): Candidate[] {
  const counts = new Map<string, number>()
  for (const { labels, ownLoad = 0 } of candidates) {
    const domain = labels?.[topologyKey]
    if (domain !== undefined) counts.set(domain, (counts.get(domain) ?? 0) + ownLoad)
  }
  const least = counts.size < minDomains ? 0 : Math.min(...counts.values())
  return candidates.filter(({ labels }) => {
    const count = counts.get(labels?.[topologyKey] ?? '')
    return count !== undefined && count + 1 - least <= maxSkew
  })
}

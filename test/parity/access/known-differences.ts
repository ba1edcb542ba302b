// Where answers about identity and rights differ from a real server's, by title of the row, and why.
export const knownAccessDifferences: Readonly<Record<string, string>> = {
  'refused: GET /version': 'it names this program',
  'refused: GET /apis': 'the group apiregistration.k8s.io is not served in a logical cluster',
  'impersonation: who may become whom': 'without a user it is a request that is wrong: 400, where upstream answers 500',
  'rules: verbs, wildcards, names, subresources':
    'health and version are open to everybody without a binding, and the rules come in another order',
  'reviews that are wrong': 'why a member of system:masters may is told, and field managers are not shown',
  'TokenRequest: what may be asked': 'another kind is refused in other words',
  'tokens: who they are, and until when':
    'a token is refused as soon as its ServiceAccount is gone; a real server remembers it for ten seconds',
}

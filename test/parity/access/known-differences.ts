// Rows about identity and permissions that differ from a real server, by title, with the reason.
export const knownAccessDifferences: Readonly<Record<string, string>> = {
  'refused: GET /version': 'the answer names this program',
  'impersonation: who may become whom':
    'impersonation without a user is a bad request here: 400, where upstream answers 500',
  'rules: verbs, wildcards, names, subresources':
    'health and version need no binding here, and the rules come in another order',
  'invalid reviews': 'the reason is given for members of system:masters, and field managers are not returned',
  'TokenRequest: allowed and refused options': 'the message for another kind differs',
  'tokens: who they are, and until when':
    'a token is refused as soon as its ServiceAccount is deleted; a real server caches it for ten seconds',
}

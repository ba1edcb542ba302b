// AuthenticationConfiguration (apiserver.config.k8s.io/v1, KEP-3331): which issuers of tokens are trusted, and who their
// users are here. Checked with the rules and texts of kube-apiserver, and compiled.
import { X509Certificate } from 'node:crypto'
import {
  anyType,
  boolType,
  compileExpression,
  declaredType,
  type Environment,
  extendEnvironment,
  isSameType,
  kubernetesEnvironment,
  mapOf,
  parseExpression,
  Program,
  stringType,
} from '#apimachinery/cel/index.ts'
import {
  childPath,
  dns1123SubdomainErrors,
  fieldDuplicate,
  fieldInvalid,
  fieldRequired,
  indexPath,
  regexText,
} from '#apimachinery/field/index.ts'
import { parseStructuralSchema } from '#apimachinery/schema/index.ts'
import { parseUrl, type GoUrl } from '#apimachinery/text/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { JwtIssuer, PrefixedClaim } from '#crds/index.ts'

/** A rule that holds if its program gives true. */
export interface CompiledRule {
  readonly program: Program
  readonly expression: string
  readonly message: string
}

/** An issuer that was checked, with its compiled expressions. */
export interface CompiledIssuer {
  readonly source: JwtIssuer
  readonly claimRules: readonly CompiledRule[]
  readonly username?: Program
  readonly groups?: Program
  readonly uid?: Program
  readonly extra: readonly { readonly key: string; readonly program: Program }[]
  readonly userRules: readonly CompiledRule[]
}

/** Input that may lack anything. */
type Unchecked<T> = T extends readonly (infer U)[]
  ? readonly Unchecked<U>[]
  : T extends object
    ? { readonly [K in keyof T]?: Unchecked<T[K]> | undefined }
    : T
type UncheckedIssuer = Unchecked<JwtIssuer>

export interface CompiledIssuers {
  readonly issuers: readonly CompiledIssuer[]
  /** Empty if all are valid. */
  readonly causes: readonly StatusCause[]
}

/** The only error that kube-apiserver does not have. */
export const noEgressSelectors = 'kcp has no egress selectors: remove it'

/** The most issuers of one configuration. */
export const maxIssuers = 64

interface Environments {
  readonly claims: Environment
  readonly user: Environment
}

/** The user in rules about users, as UserInfo of authentication.k8s.io. */
export const userSchema = parseStructuralSchema({
  type: 'object',
  properties: {
    username: { type: 'string' },
    uid: { type: 'string' },
    groups: { type: 'array', items: { type: 'string' } },
    extra: { type: 'object', additionalProperties: { type: 'array', items: { type: 'string' } } },
  },
})

let known: Environments | undefined

function environments(): Environments {
  if (known !== undefined) return known
  const base = kubernetesEnvironment({ minor: 33 })
  const userType = declaredType(userSchema, 'kubernetes.UserInfo')
  if (userType === undefined) throw new Error('expressions cannot see users')
  known = {
    claims: extendEnvironment(base, { variables: { claims: mapOf(stringType, anyType) } }),
    user: extendEnvironment(base, { variables: { user: userType.type }, declaredTypes: [userType] }),
  }
  return known
}

/** Checks and compiles. `path` is the field with the list; `disallowed`: issuers that are our own. */
export function compileIssuers(
  list: readonly UncheckedIssuer[],
  { path = 'jwt', disallowed = [] }: { readonly path?: string; readonly disallowed?: readonly string[] } = {},
): CompiledIssuers {
  const causes: StatusCause[] = []
  if (list.length > maxIssuers)
    causes.push({
      reason: 'FieldValueTooMany',
      message: `Too many: ${list.length}: must have at most ${maxIssuers} items`,
      field: path,
    })
  const [urls, discoveryUrls] = [new Set<string>(), new Set<string>()]
  const issuers = list.slice(0, maxIssuers).map((source, index) => {
    const at = indexPath(path, index)
    const compiler = new Compiler(source, at, disallowed)
    const compiled = compiler.compile()
    causes.push(...compiler.causes)
    const { url = '', discoveryURL = '' } = source.issuer ?? {}
    if (urls.has(url)) causes.push(fieldDuplicate(`${at}.issuer.url`, url))
    urls.add(url)
    if (discoveryURL !== '' && discoveryUrls.has(discoveryURL))
      causes.push(fieldDuplicate(`${at}.issuer.discoveryURL`, discoveryURL))
    discoveryUrls.add(discoveryURL)
    return compiled
  })
  return { issuers, causes }
}

class Compiler {
  readonly causes: StatusCause[] = []
  readonly #source: UncheckedIssuer
  readonly #path: string
  readonly #disallowed: readonly string[]
  #usesEmail = false
  #usesEmailVerified = false

  constructor(source: UncheckedIssuer, path: string, disallowed: readonly string[]) {
    this.#source = source
    this.#path = path
    this.#disallowed = disallowed
  }

  compile(): CompiledIssuer {
    this.#checkIssuer()
    const claimRules = this.#claimRules()
    const mappings = this.#mappings()
    return { source: this.#source as JwtIssuer, claimRules, ...mappings, userRules: this.#userRules() }
  }

  #checkIssuer(): void {
    const path = childPath(this.#path, 'issuer')
    const { url = '', discoveryURL = '', audiences = [], audienceMatchPolicy = '' } = this.#source.issuer ?? {}
    if (url === '') this.causes.push(fieldRequired(childPath(path, 'url')))
    else this.#checkUrl(url, childPath(path, 'url'), this.#disallowed)
    if (discoveryURL !== '') {
      const at = childPath(path, 'discoveryURL')
      if (url !== '' && trimmed(url) === trimmed(discoveryURL))
        this.causes.push(fieldInvalid(at, discoveryURL, 'discoveryURL must be different from URL'))
      this.#checkUrl(discoveryURL, at, [])
    }
    this.#checkAudiences(audiences, audienceMatchPolicy, path)
    const { certificateAuthority = '', egressSelectorType = '' } = this.#source.issuer ?? {}
    const problem = certificateAuthority === '' ? undefined : certificatesProblem(certificateAuthority)
    if (problem !== undefined)
      this.causes.push(fieldInvalid(childPath(path, 'certificateAuthority'), '<omitted>', problem))
    this.#checkEgress(egressSelectorType, childPath(path, 'egressSelectorType'))
  }

  #checkEgress(type: string, path: string): void {
    if (type === '') return
    this.causes.push(fieldInvalid(path, type, noEgressSelectors))
    if (type !== 'controlplane' && type !== 'cluster')
      this.causes.push(fieldInvalid(path, type, 'egress selector must be either controlplane or cluster'))
  }

  #checkUrl(text: string, path: string, disallowed: readonly string[]): void {
    const add = (detail: string): void => void this.causes.push(fieldInvalid(path, text, detail))
    if (disallowed.includes(text)) add(`URL must not overlap with disallowed issuers: [${disallowed.join(' ')}]`)
    let url: GoUrl
    try {
      url = parseUrl(text)
    } catch (error) {
      add((error as Error).message)
      return
    }
    if (url.scheme !== 'https') add('URL scheme must be https')
    if (url.user !== undefined) add('URL must not contain a username or password')
    if ((url.query ?? '') !== '') add('URL must not contain a query')
    if ((url.fragment ?? '') !== '') add('URL must not contain a fragment')
  }

  #checkAudiences(audiences: readonly string[], policy: string, path: string): void {
    const at = childPath(path, 'audiences')
    if (audiences.length === 0) {
      this.causes.push(fieldRequired(at, `at least one ${at} is required`))
      return
    }
    const seen = new Set<string>()
    for (const [index, audience] of audiences.entries()) {
      if (audience === '') this.causes.push(fieldRequired(indexPath(at, index)))
      if (seen.has(audience)) this.causes.push(fieldDuplicate(indexPath(at, index), audience))
      seen.add(audience)
    }
    const policyPath = childPath(path, 'audienceMatchPolicy')
    if (audiences.length > 1 && policy !== 'MatchAny')
      this.causes.push(fieldInvalid(policyPath, policy, 'audienceMatchPolicy must be MatchAny for multiple audiences'))
    if (audiences.length === 1 && policy !== '' && policy !== 'MatchAny')
      this.causes.push(
        fieldInvalid(policyPath, policy, 'audienceMatchPolicy must be empty or MatchAny for single audience'),
      )
  }

  #claimRules(): CompiledRule[] {
    const path = childPath(this.#path, 'claimValidationRules')
    const [claims, expressions] = [new Set<string>(), new Set<string>()]
    return (this.#source.claimValidationRules ?? []).flatMap((rule, index) => {
      const at = indexPath(path, index)
      const { claim = '', requiredValue = '', expression = '', message = '' } = rule
      if (claim !== '' && expression !== '')
        this.causes.push(fieldInvalid(at, claim, "claim and expression can't both be set"))
      else if (claim === '' && expression === '') this.causes.push(fieldRequired(at, 'claim or expression is required'))
      else if (claim !== '') {
        if (message !== '')
          this.causes.push(fieldInvalid(childPath(at, 'message'), message, 'may not be specified when claim is set'))
        if (claims.has(claim)) this.causes.push(fieldDuplicate(childPath(at, 'claim'), claim))
        claims.add(claim)
      } else {
        if (requiredValue !== '')
          this.causes.push(
            fieldInvalid(childPath(at, 'requiredValue'), requiredValue, 'may not be specified when expression is set'),
          )
        if (expressions.has(expression)) {
          this.causes.push(fieldDuplicate(childPath(at, 'expression'), expression))
          return []
        }
        expressions.add(expression)
        const program = this.#compile(expression, childPath(at, 'expression'), { isRule: true })
        this.#noteVerified(program, expression)
        return program === undefined ? [] : [{ program, expression, message }]
      }
      return []
    })
  }

  #mappings(): Omit<CompiledIssuer, 'source' | 'claimRules' | 'userRules'> {
    const path = childPath(this.#path, 'claimMappings')
    const { username: names, groups: teams, uid: ids, extra: more = [] } = this.#source.claimMappings ?? {}
    const before = this.causes.length
    const username = this.#prefixed(names, childPath(path, 'username'), true)
    // A name with an error is not looked into.
    if (username !== undefined && this.causes.length === before) {
      this.#usesEmail = selects(names?.expression ?? '', 'email')
      this.#noteVerified(username, names?.expression ?? '')
    }
    const groups = this.#prefixed(teams, childPath(path, 'groups'), false)
    const uid = this.#uid(ids, childPath(path, 'uid'))
    const extra = this.#extra(more, childPath(path, 'extra'))
    if (this.#usesEmail && !this.#usesEmailVerified)
      this.causes.push(
        fieldInvalid(
          childPath(path, 'username.expression'),
          names?.expression ?? '',
          'claims.email_verified must be used in claimMappings.username.expression or claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression',
        ),
      )
    return { ...(username && { username }), ...(groups && { groups }), ...(uid && { uid }), extra }
  }

  #prefixed(mapping: Unchecked<PrefixedClaim> | undefined, path: string, isRequired: boolean): Program | undefined {
    const { claim = '', expression = '', prefix } = mapping ?? {}
    if (expression !== '' && claim !== '')
      this.causes.push(fieldInvalid(path, '', "claim and expression can't both be set"))
    else if (expression === '' && claim === '') {
      if (isRequired) this.causes.push(fieldRequired(path, 'claim or expression is required'))
    } else if (expression !== '') {
      if (prefix !== undefined)
        this.causes.push(fieldInvalid(childPath(path, 'prefix'), prefix, 'may not be specified when expression is set'))
      return this.#compile(expression, childPath(path, 'expression'))
    } else if (prefix === undefined)
      this.causes.push(
        fieldRequired(
          childPath(path, 'prefix'),
          'prefix is required when claim is set. It can be set to an empty string to disable prefixing',
        ),
      )
    return undefined
  }

  #uid(mapping: Unchecked<JwtIssuer['claimMappings']['uid']>, path: string): Program | undefined {
    const { claim = '', expression = '' } = mapping ?? {}
    if (claim !== '' && expression !== '')
      this.causes.push(fieldInvalid(path, '', "claim and expression can't both be set"))
    else if (expression !== '') return this.#compile(expression, childPath(path, 'expression'))
    return undefined
  }

  #extra(list: Unchecked<NonNullable<JwtIssuer['claimMappings']['extra']>>, path: string): CompiledIssuer['extra'] {
    const seen = new Set<string>()
    return list.flatMap(({ key = '', valueExpression = '' }, index) => {
      const at = indexPath(path, index)
      this.#checkKey(key, childPath(at, 'key'))
      if (seen.has(key)) {
        this.causes.push(fieldDuplicate(childPath(at, 'key'), key))
        return []
      }
      seen.add(key)
      if (valueExpression === '') {
        this.causes.push(fieldRequired(childPath(at, 'valueExpression')))
        return []
      }
      const program = this.#compile(valueExpression, childPath(at, 'valueExpression'))
      this.#noteVerified(program, valueExpression)
      return program === undefined ? [] : [{ key, program }]
    })
  }

  #checkKey(key: string, path: string): void {
    const slash = key.indexOf('/')
    const [domain, rest] = slash < 0 ? ['', ''] : [key.slice(0, slash), key.slice(slash + 1)]
    if (key === '') this.causes.push(fieldRequired(path))
    else if (domain === '' || rest === '')
      this.causes.push(fieldInvalid(path, key, 'must be a domain-prefixed path (such as "acme.io/foo")'))
    else {
      this.causes.push(...dns1123SubdomainErrors(domain).map((error) => fieldInvalid(path, domain, error)))
      if (!httpPath.test(rest)) this.causes.push(fieldInvalid(path, rest, httpPathText))
    }
    if (key !== key.toLowerCase()) this.causes.push(fieldInvalid(path, key, 'must be lowercase'))
    if (/(^|\.)(kubernetes|k8s)\.io$/.test(domain))
      this.causes.push(
        fieldInvalid(path, key, 'k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use'),
      )
  }

  #userRules(): CompiledRule[] {
    const path = childPath(this.#path, 'userValidationRules')
    const seen = new Set<string>()
    return (this.#source.userValidationRules ?? []).flatMap(({ expression = '', message = '' }, index) => {
      const at = childPath(indexPath(path, index), 'expression')
      if (expression === '') this.causes.push(fieldRequired(at))
      else if (seen.has(expression)) this.causes.push(fieldDuplicate(at, expression))
      else {
        seen.add(expression)
        const program = this.#compile(expression, at, { isRule: true, isAboutUser: true })
        if (program !== undefined) return [{ program, expression, message }]
      }
      return []
    })
  }

  #compile(
    text: string,
    path: string,
    { isRule = false, isAboutUser = false }: { readonly isRule?: boolean; readonly isAboutUser?: boolean } = {},
  ): Program | undefined {
    const { claims, user } = environments()
    const program = compileExpression(text, isAboutUser ? user : claims)
    if (!(program instanceof Program)) {
      this.causes.push(fieldInvalid(path, text, `compilation failed: ${program.message}`))
      return undefined
    }
    if (isRule && !isSameType(program.outputType, boolType)) {
      this.causes.push(fieldInvalid(path, text, 'must evaluate to bool'))
      return undefined
    }
    return program
  }

  #noteVerified(program: Program | undefined, text: string): void {
    if (program !== undefined && selects(text, 'email_verified')) this.#usesEmailVerified = true
  }
}

const httpPath = /^[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$/
const httpPathText = regexText('Invalid path', "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+")

const trimmed = (url: string): string => url.replace(/\/+$/, '')

/** Whether the expression selects this field of the claims. */
function selects(text: string, field: string): boolean {
  const parsed = parseExpression(text, environments().claims.parser)
  return 'root' in parsed && selectsIn(parsed.root, field)
}

function selectsIn(node: unknown, field: string): boolean {
  if (Array.isArray(node)) return node.some((item) => selectsIn(item, field))
  if (typeof node !== 'object' || node === null) return false
  const { kind, operand, field: selected, name, args } = node as Partial<Record<string, unknown>>
  if (kind === 'select' && isClaims(operand) && selected === field) return true
  // An optional selection: claims.?email.
  if (kind === 'call' && name === '_?._' && Array.isArray(args)) {
    const [target, of] = args as [unknown, { value?: unknown } | undefined]
    if (isClaims(target) && of?.value === field) return true
  }
  return Object.values(node).some((value) => selectsIn(value, field))
}

function isClaims(node: unknown): boolean {
  const { kind, name } = (node ?? {}) as { kind?: unknown; name?: unknown }
  return kind === 'identifier' && name === 'claims'
}

function certificatesProblem(pem: string): string | undefined {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? []
  if (blocks.length === 0) return 'data does not contain any valid RSA or ECDSA certificates'
  try {
    for (const block of blocks) new X509Certificate(block)
    return undefined
  } catch {
    return 'x509: malformed certificate'
  }
}

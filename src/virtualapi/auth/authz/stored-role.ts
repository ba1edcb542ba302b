// A role as it is stored, and a cache of the compiled rules of recently needed roles. Tenants may store a gibibyte of
// roles; compiled, that would be many times as much.
import { CompiledRules } from './compiled-rules.ts'
import { parseRules } from './policy-rules.ts'

/** An RBAC object as it is read from the store. */
export interface RbacSource {
  /** Size of its JSON. */
  readonly bytes: number
  /** True if its label says that it holds in descendants, too. */
  readonly inherits: boolean
  /** Parses the object. Called at once for a binding, and for a role whenever its rules must be compiled. */
  read(): Readonly<Record<string, unknown>>
}

/** Maximum of bytes of JSON of all roles in the cache. Compiled rules take some five times the bytes of their JSON. */
const maxCachedBytes = 32 * 1024 * 1024
/** Memory of a cached role besides its rules, bytes. */
const overheadBytes = 1024

/** One role. Its rules are compiled when a decision needs them. */
export class StoredRole {
  readonly #source: RbacSource
  #bytes: number | undefined
  compiled: CompiledRules | undefined
  /** True if the role was needed since the cache last looked for roles to drop. */
  wasUsed = false

  constructor(source: RbacSource) {
    this.#source = source
  }

  /** Size of its JSON. */
  get bytes(): number {
    return (this.#bytes ??= this.#source.bytes)
  }

  /** True if the role can be bound in descendants, too. */
  get inherits(): boolean {
    return this.#source.inherits
  }

  /** Parses the stored object and returns its rules, valid or not. */
  readRules(): unknown {
    return this.#source.read()['rules']
  }
}

/** Keeps the compiled rules of recently used roles, of all logical clusters together. */
export class CompiledRoles {
  readonly #kept = new Set<StoredRole>()
  #bytes = 0

  /** The rules of this role, compiled now unless they are in the cache. */
  rulesOf(role: StoredRole): CompiledRules {
    role.wasUsed = true
    return role.compiled ?? this.#compile(role)
  }

  #compile(role: StoredRole): CompiledRules {
    const compiled = new CompiledRules(parseRules(role.readRules()))
    role.compiled = compiled
    this.#kept.add(role)
    this.#bytes += role.bytes + overheadBytes
    for (const oldest of this.#kept) {
      if (this.#bytes <= maxCachedBytes) break
      this.#kept.delete(oldest)
      if (oldest.wasUsed) {
        // A second chance: one pass over the cache clears all marks.
        oldest.wasUsed = false
        this.#kept.add(oldest)
      } else this.#drop(oldest)
    }
    return compiled
  }

  #drop(role: StoredRole): void {
    role.compiled = undefined
    this.#bytes -= role.bytes + overheadBytes
  }
}

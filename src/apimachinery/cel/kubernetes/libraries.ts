// The libraries that Kubernetes adds to the language.
import type { FunctionDeclaration } from '../check/declarations.ts'
import type { CelType } from '../types/cel-type.ts'

export const libraries = {
  urls: [] as readonly FunctionDeclaration[],
  authorizer: [] as readonly FunctionDeclaration[],
  authorizerSelectors: [] as readonly FunctionDeclaration[],
  quantity: [] as readonly FunctionDeclaration[],
  ip: [] as readonly FunctionDeclaration[],
  cidr: [] as readonly FunctionDeclaration[],
  format: [] as readonly FunctionDeclaration[],
  semver: [] as readonly FunctionDeclaration[],
  networkTypes: [] as readonly CelType[],
}

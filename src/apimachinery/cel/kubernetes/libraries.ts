// The libraries that Kubernetes adds to the language.
import { authorizerFunctions, authorizerSelectorFunctions } from './authorizer.ts'
import { formatFunctions } from './formats.ts'
import { cidrFunctions, ipFunctions, networkTypes } from './network.ts'
import { quantityFunctions } from './quantity.ts'
import { semverFunctions } from './semver.ts'
import { urlFunctions } from './urls.ts'

export const libraries = {
  urls: urlFunctions,
  authorizer: authorizerFunctions,
  authorizerSelectors: authorizerSelectorFunctions,
  quantity: quantityFunctions,
  ip: ipFunctions,
  cidr: cidrFunctions,
  format: formatFunctions,
  semver: semverFunctions,
  networkTypes,
}

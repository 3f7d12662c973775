// The specification's metaModel, and whether a value has a type of it. What LSP leaves open for any member (LSPAny) stays so; else a member that
// the model does not know is a mistake.
import { readFileSync } from 'node:fs';

const kBases = {
  string: (value) => typeof value === 'string',
  URI: (value) => typeof value === 'string',
  DocumentUri: (value) => typeof value === 'string',
  RegExp: (value) => typeof value === 'string',
  boolean: (value) => typeof value === 'boolean',
  null: (value) => value === null,
  decimal: (value) => typeof value === 'number',
  integer: (value) => Number.isInteger(value) && Math.abs(value) <= 2 ** 31,
  uinteger: (value) => Number.isInteger(value) && value >= 0 && value < 2 ** 31,
};

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
const named = (list) => new Map(list.map((each) => [each.name ?? each.method, each]));

export class MetaModel {
  constructor(file) {
    const model = JSON.parse(readFileSync(file, 'utf8'));
    this.structures = named(model.structures);
    this.enumerations = named(model.enumerations);
    this.aliases = named(model.typeAliases);
    this.requests = named(model.requests);
    this.notifications = named(model.notifications);
  }

  /** The type of a request's result. */
  resultOf(method) {
    return this.requests.get(method).result;
  }

  /** The type of a message's params. */
  paramsOf(method) {
    return (this.notifications.get(method) ?? this.requests.get(method)).params;
  }

  /** What is wrong with `value` as a `type`, and where; empty where nothing is. */
  complaint(value, type, at = 'it') {
    switch (type.kind) {
      case 'base': return kBases[type.name](value) ? '' : `${at} is no ${type.name}`;
      case 'stringLiteral': return value === type.value ? '' : `${at} is not "${type.value}"`;
      case 'reference': return this.#referred(value, type.name, at);
      case 'literal': return this.#members(value, type.value.properties, at);
      case 'array': return Array.isArray(value) ? first(value, (each, i) => this.complaint(each, type.element, `${at}[${i}]`)) : `${at} is no array`;
      case 'map': return isObject(value) ? first(Object.entries(value), ([key, each]) => this.complaint(each, type.value, `${at}.${key}`)) : `${at} is no map`;
      case 'or': return this.#one(value, type.items, at);
      default: throw new Error(`the metaModel has a kind of type that is not known here: ${type.kind}`);
    }
  }

  #one(value, types, at) {
    const complaints = types.map((type) => this.complaint(value, type, at));
    return complaints.includes('') ? '' : complaints.join(' and ');
  }

  #referred(value, name, at) {
    const alias = this.aliases.get(name);
    if (alias) return this.complaint(value, alias.type, at);
    const enumeration = this.enumerations.get(name);
    if (!enumeration) return this.#members(value, this.#propertiesOf(name), at);
    if (enumeration.supportsCustomValues) return this.complaint(value, enumeration.type, at);
    return enumeration.values.some((each) => each.value === value) ? '' : `${at} is no ${name}`;
  }

  #propertiesOf(name) {
    const { properties, extends: bases = [], mixins = [] } = this.structures.get(name);
    return [...[...bases, ...mixins].flatMap((each) => this.#propertiesOf(each.name)), ...properties];
  }

  #members(value, properties, at) {
    if (!isObject(value)) return `${at} is no object`;
    const known = new Map(properties.map((each) => [each.name, each]));
    const missing = properties.find((each) => !each.optional && !(each.name in value));
    if (missing) return `${at} lacks ${missing.name}`;
    return first(Object.entries(value), ([name, member]) =>
      known.has(name) ? this.complaint(member, known.get(name).type, `${at}.${name}`) : `${at}.${name} is unknown`);
  }
}

function first(list, complain) {
  for (const [i, each] of list.entries()) {
    const complaint = complain(each, i);
    if (complaint) return complaint;
  }
  return '';
}

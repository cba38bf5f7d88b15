/** A YAML number as JSON, with all of its digits; null: JSON has no such number (.inf, .nan). */
export function numberText(source: string): string | null {
  if (JSON_NUMBER.test(source)) return source;
  if (/^0[xo][\da-f]+$/i.test(source)) return BigInt(source).toString();
  if (/^[-+]?\d+$/.test(source)) return BigInt(source.replace('+', '')).toString();
  const [, sign = '', whole = '', fraction = '', exponent = ''] = YAML_FLOAT.exec(source) ?? [];
  if (whole === '' && fraction === '') return null;
  const digits = whole.replace(/^0+(?=\d)/, '') || '0';
  return (sign === '-' ? '-' : '') + digits + (fraction === '' ? '' : `.${fraction}`) + exponent;
}

const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?$/i;
const YAML_FLOAT = /^([-+]?)(\d*)\.?(\d*)((?:e[+-]?\d+)?)$/i;

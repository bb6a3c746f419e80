"""Codes of weights."""

from __future__ import annotations

from collections.abc import Sequence

from codec_bench.messages.errors import first_of

_NAMED = 3
"""As many tensors of each kind are named."""


def _tensors(missing: Sequence[str], extra: Sequence[str], reshaped: Sequence[str]) -> str:
    kinds = (("lack", missing), ("have left over", extra), ("have another shape of", reshaped))
    return "; they ".join(f"{problem} {first_of(names, _NAMED)}" for problem, names in kinds if names)


SENTENCES = {
    "error": {
        "address_not_web": "'{url}' cannot be fetched; expected an address that begins with https:// or http://",
        "no_disk_space": "{subject} needs {needed} in '{folder}', where {free} are free",
        "no_source": "there is no source '{source}'",
        "mirror_form": "--from got '{mirror}'; expected https://..., http://... or a folder",
        "weights_not_written": "the weights '{name}' could not be written: {cause}",
        "file_not_expected": "'{file}' has unexpected content, and its folder belongs to the user",
        "weights_without_source": "the weights '{name}' have no source '{source}'",
        "no_such_weights": "there are no weights '{weights}'",
        "weights_missing": "the weights {names} are not on this machine",
        "weights_not_local": "the weights '{weights}' are not on this machine",
        "weights_file_unreadable": "the weights '{path}' cannot be read: {cause}",
        "weights_lack_siblings": "next to the weights '{path}' there is no {names}",
        "weights_folder_lacks": "the weights folder '{path}' has no {names}",
        "weights_unreadable": "the weights in '{path}' cannot be read: {cause}",
        "no_mirror_folder": "there is no folder '{folder}' to take the weights '{name}' from",
        "mirror_folder_lacks": "the folder '{folder}' has no {names}",
        "digest_unexpected": "'{path}' has the SHA-256 {digest}; expected {expected}; it was removed",
        "git_id_unexpected": "'{path}' is not what the hub gave: its git id is not {git_id}; it was removed",
        "mirror_is_target": "the folder '{folder}' is also the folder that the weights would be copied to",
        "hub_digest_unexpected": "the hub says that '{path}' has the SHA-256 {sha256}; expected {expected}",
        "hub_size_unexpected": "the hub says that '{path}' has {size} bytes; expected {expected}",
        "weights_cut_short": "the weights in '{path}' are cut short",
        "centres_not_finite": "the weights in '{path}' have centres that are not finite numbers",
        "not_a_kmeans": "the weights in '{path}' are no k-means of scikit-learn that joblib wrote",
        "weights_being_fetched": "another process is fetching '{name}' into '{folder}'",
        # Differences of another model's weights.
        "semantic_model_differs": "semantic model {kind} (expected {expected})",
        "dnsmos_expected": "expected DNSMOS's {file}",
        "no_fitting_value": "no value '{name}' that fits",
        "no_xvector_network": "no x-vector network",
        "activation_differs": "{activation}, scaled {is_scaled}",
        "tokeniser_lacks": "it has no {token}",
        "weights_of_another_model": "the weights in '{folder}' are another model's: {difference}",
        "transformers_lacks": "transformers {version}, which is installed, has no {name}",
        "weights_not_loaded": "the weights in '{folder}' cannot be loaded: {type}: {reason}",
        "weights_not_tensors": "the weights in '{path}' are a {type}; expected tensors by name",
        "word_too_long": "the weights in '{path}' hold a word of more than {most} characters",
        "weights_unpack_too_large": "the weights in '{path}' have {size} bytes and would unpack to {unpacked}",
        "tensors_compressed": "the tensors in '{path}' are compressed",
        "folder_lacks": "the folder '{folder}' has no {names}",
        "weights_not_read": "the weights in '{path}' cannot be read: {type}: {reason}",
        "no_weights_entry": "the weights in '{path}' have no entry '{key}'",
        "tensors_wrong": "the weights in '{path}' are not those of this model: they {difference}",
        "tensors_differ": _tensors,
        "tensors_missing": "lack {tensors} tensors, such as {example}",
        "tensors_extra": "have left over {tensors} tensors, such as {example}",
        "tensors_reshaped": "have another shape of {tensors} tensors, such as {example}",
        "by_hand": "the weights '{name}' must be downloaded by hand",
        "weights_not_fetched": "the weights '{name}' could not be fetched: {cause}",
        "catalogue_name": "configs/weights/{name}.yaml is called '{entry}'; expected '{name}'",
        "host_unreachable": "'{host}' could not be reached: {cause}{resumable}",
        "offline": "nothing can be fetched: {variable} is set in the environment",
        "not_fetched_status": "'{url}' could not be fetched: the server answered {status} {reason}",
        "download_broke_off": "'{url}' broke off after {bytes} bytes",
        "download_size": "'{url}' gave {bytes} bytes; expected {expected}; it was removed",
        "download_digest": "'{url}' gave a file with the SHA-256 {digest}; expected {expected}; it was removed",
        "download_declared": "'{url}' has {bytes} bytes; expected {expected}; nothing was fetched",
        "download_web_page": "'{url}' answered with a web page in place of the file",
        "download_refused": "the server refused '{url}': it answered {status} {reason}",
        "download_missing": "'{url}' was not found: the server answered {status} {reason}",
        "answer_not_json": "'{url}' did not answer with JSON",
        "download_beyond": "'{url}' gave more than {most} bytes; expected {most}; it was removed",
        "fetched_unexpected": "the weights '{name}' are not the expected ones: {reason}; they were removed",
        "hub_gave_less": "'{endpoint}/{repository}' did not give {names}",
        "repository_gated": "the repository '{repository}' is gated: its owners want their terms accepted first",
        "repository_revision": "the repository '{repository}' has no revision '{revision}'",
        "modelscope_answer": "'{url}' did not answer as ModelScope does for '{repository}'",
        "source_lacks": "'{source}' has no {names}",
    },
}

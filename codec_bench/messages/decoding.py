"""Codes of sounds that cannot be read."""

from __future__ import annotations

SENTENCES = {
    "error": {
        "bytes_missing": "'{name}' is truncated: it declares {declared} bytes of sound and holds {held}",
        "bytes_not_declared": (
            "'{name}' declares {declared} bytes of sound and holds {held}; the rest would not be read. "
            "Write the file again with a right header"
        ),
        "frames_missing": "'{name}' is truncated: it declares {declared} frames of sound and holds {held}",
        "last_frame_cut": "'{name}' is truncated: its last frame is cut",
        "samples_not_finite": (
            "'{name}' has {samples} samples that are not finite, the first ({value}) at {at_s:.3f} s"
        ),
        "samples_too_loud": (
            "'{name}' has {samples} samples beyond {most:g} times full scale, the first ({value}) at {at_s:.3f} s"
        ),
        "joined_sounds": "'{name}' is several sound files joined. Cut it at byte {at}",
        "sound_without_samples": "'{name}' holds no samples",
        "joined_rates": (
            "'{name}' is several sound files joined: {rate_hz} Hz, and {other_rate_hz} Hz from byte {at} on"
        ),
        "folder_for_sound": "'{path}' is a folder; expected a sound file",
        "sound_empty": "'{name}' is empty (0 bytes)",
        "last_frame_elsewhere": "'{name}' is damaged: {held} samples were decoded, and its last frame ends elsewhere",
        "joined_sounds_short": (
            "'{name}' is several sound files joined: {held} of at least {least} samples were decoded"
        ),
        "joined_sounds_first": (
            "'{name}' is several sound files joined, and only the first would be read. Cut it at byte {offset}"
        ),
        "end_missing": "'{name}' is truncated: {missing:,} bytes are missing at its end",
        "samples_missing": "'{name}' is truncated: it declares {declared} samples and holds {held}",
        "sound_rate": "'{name}' has a sample rate of {rate_hz} Hz; expected {lowest_hz} to {highest_hz}",
        "no_file": "there is no file '{path}'",
        "decoding_out_of_memory": "'{name}' cannot be decoded: it asks for more memory than there is",
        "file_too_long": "'{name}' is longer than {most_s:,.0f} s; cut it into parts",
        "file_too_large": "'{name}' holds more than {most_gib:g} GiB of samples; cut it into parts",
        "not_a_sound": "'{name}' is not a sound file that libsndfile or FFmpeg can read ({reason})",
        "not_decoded": "'{name}' cannot be decoded: {message}",
        "no_audio_stream": "'{name}' holds no audio stream",
        "coding_unknown": "'{name}' is coded in a way that FFmpeg does not know",
        "member_cut": "'{member}' is cut: the file ends after {held} of its {size} bytes",
        "segment_beyond": lambda span, begin_s, end_s, length_s: (
            f"'{span}': the segment {'begins' if end_s is None else 'ends'} at "
            f"{begin_s if end_s is None else end_s:.6g} s, and the audio ends at {length_s:.3f} s"
        ),
        "segment_empty": "'{span}': the segment is empty",
        "segment_channel": "'{span}': the audio has {channels} channels; there is no channel {channel}",
        "cell_null": "'{locator}' is null: the row has no audio",
        "cell_without_sound": "'{locator}' holds {type}; expected a sound file's bytes, a path or samples",
        "cell_without_rate": "'{locator}' holds samples without a rate; expected one in {known}",
        "table_column": "'{file}' has no column '{column}'; it has {known}",
        "table_row": "'{file}' has {rows} rows; there is no row {row} (from 0)",
        "parquet_unreadable": "'{path}' cannot be read as Parquet: {cause}",
        "cell_unusable": "'{locator}': {cause}",
        "path_leads_out": "'{path}' is named by '{file}', and leads out of the data set",
        "cell_item": "'{locator}': the row has {sounds} sounds there; there is no item {item}",
        "part_damaged": "'{path}' is damaged: part {part} declares {declared} rows and holds {held}",
        "url_with_password": "the URL '{url}' holds a user's name or password, which would be recorded",
        "url_protocol": "'{url}' has the protocol '{protocol}', from which nothing is read",
        "url_protocol_unknown": "'{url}' has the protocol '{protocol}', which fsspec does not know",
        "remote_missing": "is missing",
        "remote_forbidden": "may not be read: access was refused",
        "remote_credentials": "may not be read: the environment has no credentials for it",
        "remote_status": "the server answered {status}",
        "remote_stalled": "the connection stalled",
        "remote_folder": "is a folder",
        "remote_broken": "the connection broke off ({message})",
        "url_refused": "'{url}' {cause}",
        "url_unreadable": "'{url}' could not be read in {tries} tries: {cause}",
        "flac_limits": (
            "FLAC holds up to {most_channels} channels and {highest_hz} Hz; the audio has {channels} and {rate_hz}"
        ),
    },
}
